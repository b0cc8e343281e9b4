"""Ed25519 signatures of explanations, over their fingerprint; needs the library `cryptography` (an extra)."""

import base64
from typing import Any

from ibforecast.core.errors import DataError, MissingExtraError

CLAIM = b"ibforecast.explanation/1:"
"""Put before the fingerprint, so that a signature of something else cannot be used here."""

SIZE = 64


def sign(sha256: str, key: bytes) -> str:
    """Return the signature of a fingerprint by a private key in PEM."""
    private = _key(key, "private")
    return base64.b64encode(private.sign(CLAIM + sha256.encode())).decode()


def is_signed_by(sha256: str, signature: str, key: bytes) -> bool:
    """Return whether a fingerprint was signed with the private key that belongs to a public key in PEM."""
    public = _key(key, "public")
    from cryptography.exceptions import InvalidSignature

    if not is_signature(signature):
        return False
    try:
        public.verify(base64.b64decode(signature), CLAIM + sha256.encode())
    except InvalidSignature:
        return False
    return True


def is_signature(text: str) -> bool:
    """Return whether a text is a signature in canonical base64."""
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        return False
    # The last character of base64 has unused bits, so several texts decode to the same bytes; only one is accepted.
    return len(raw) == SIZE and base64.b64encode(raw).decode() == text


def new_keys() -> tuple[bytes, bytes]:
    """Return a new private key and its public key, in PEM."""
    _require_cryptography()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    return (
        private.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        private.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo),
    )


def _key(pem: bytes, half: str) -> Any:
    """Read the private or the public half of a key pair; refuse keys of other kinds."""
    _require_cryptography()
    from cryptography.exceptions import InternalError, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

    try:
        key = load_pem_private_key(pem, None) if half == "private" else load_pem_public_key(pem)
    except (ValueError, TypeError, InternalError, UnsupportedAlgorithm) as error:
        raise DataError(
            f"a {half} key must be an Ed25519 key in PEM", str(error)[:80], "make one with: ibforecast sign --new-key"
        ) from error
    if not isinstance(key, Ed25519PrivateKey if half == "private" else Ed25519PublicKey):
        raise DataError(
            f"a {half} key must be an Ed25519 key in PEM",
            type(key).__name__,
            "make one with: ibforecast sign --new-key",
        )
    return key


def _require_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("cryptography", "sign") from error
