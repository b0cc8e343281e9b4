"""Who issued an explanation: Ed25519 signatures over its fingerprint, by the library `cryptography` (an extra)."""

import base64
from typing import Any

from ibforecast.core.errors import DataError, MissingExtraError

CLAIM = b"ibforecast.explanation/1:"
"""Put before the fingerprint, so that a signature given for something else cannot be used here."""

SIZE = 64


def sign(sha256: str, key: bytes) -> str:
    """Return the signature of a fingerprint by a private key in PEM."""
    private = _key(key, "private")
    return base64.b64encode(private.sign(CLAIM + sha256.encode())).decode()


def is_signed_by(sha256: str, signature: str, key: bytes) -> bool:
    """Whether a signature of a fingerprint was made with the private half of a public key in PEM."""
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
    """Whether a text is the one way to write a signature in base64."""
    try:
        given = base64.b64decode(text, validate=True)
    except ValueError:
        return False
    return len(given) == SIZE and base64.b64encode(given).decode() == text


def new_keys() -> tuple[bytes, bytes]:
    """Return a new private and public key in PEM."""
    _needed()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    return (
        private.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        private.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo),
    )


def _key(pem: bytes, half: str) -> Any:
    """Read one half of a key pair; a key of another kind is refused."""
    _needed()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

    try:
        key = load_pem_private_key(pem, None) if half == "private" else load_pem_public_key(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
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


def _needed() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("cryptography", "sign") from error
