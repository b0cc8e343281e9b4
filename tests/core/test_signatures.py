"""Signatures of explanations: with key pairs, in Python and on the command line."""

import base64
import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from cryptography.exceptions import InternalError
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.core.samples import sample

from ibforecast.cli.main import main
from ibforecast.core.errors import DataError, IBForecastError, UsageError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.signatures import is_signed_by, new_keys, sign

SHA256 = "ab" * 32
PRIVATE, PUBLIC = new_keys()


def test_the_public_key_verifies_a_signature() -> None:
    signature = sign(SHA256, PRIVATE)
    assert is_signed_by(SHA256, signature, PUBLIC)
    assert sign(SHA256, PRIVATE) == signature


def test_a_signature_of_other_content_or_by_another_key_is_refused() -> None:
    signature = sign(SHA256, PRIVATE)
    assert not is_signed_by("cd" * 32, signature, PUBLIC)
    assert not is_signed_by(SHA256, signature, new_keys()[1])
    assert not is_signed_by(SHA256, sign(SHA256, new_keys()[0]), PUBLIC)


def test_a_signature_of_the_bare_fingerprint_is_refused() -> None:
    key = serialization.load_pem_private_key(PRIVATE, None)
    assert isinstance(key, Ed25519PrivateKey)
    assert not is_signed_by(SHA256, base64.b64encode(key.sign(SHA256.encode())).decode(), PUBLIC)


GOOD = sign(SHA256, PRIVATE)


@pytest.mark.parametrize(
    "signature",
    [
        "",
        "no signature",
        "é",
        GOOD[:-1],
        GOOD + "\n",
        GOOD + "AAAA",
        " " + GOOD,
        GOOD.rstrip("="),
        GOOD[:4] + "!" + GOOD[5:],
        GOOD.replace(GOOD[0], "_", 1),
        base64.b64encode(b"\0" * 64).decode(),
        base64.b64encode(b"\0" * 63).decode(),
        # The last letter before the padding has four unused bits, which must be zero.
        GOOD[:-3] + chr(ord(GOOD[-3]) + 1) + "==",
    ],
    ids=lambda signature: f"of {len(signature)} characters",
)
def test_a_malformed_signature_is_rejected_without_an_exception(signature: str) -> None:
    assert is_signed_by(SHA256, GOOD, PUBLIC)
    assert not is_signed_by(SHA256, signature, PUBLIC)


def pem_of(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> tuple[bytes, bytes]:
    pem = serialization.Encoding.PEM
    return (
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo),
    )


@pytest.mark.parametrize(
    ("private", "public"),
    [
        pem_of(rsa.generate_private_key(65537, 2048)),
        pem_of(ec.generate_private_key(ec.SECP256R1())),
        (PUBLIC, PRIVATE),
        (b"", b""),
        (b"a key", b"a key"),
        (PRIVATE[:40], PUBLIC[:40]),
        (PRIVATE.replace(b"-----BEGIN", b"-----START"), PUBLIC.replace(b"-----BEGIN", b"-----START")),
    ],
    ids=["RSA", "elliptic curve", "the other half", "empty", "text", "cut off", "no PEM"],
)
def test_a_key_of_another_kind_is_refused(private: bytes, public: bytes) -> None:
    with pytest.raises(DataError, match=r"a private key must be an Ed25519 key in PEM .*ibforecast sign --new-key"):
        sign(SHA256, private)
    with pytest.raises(DataError, match=r"a public key must be an Ed25519 key in PEM .*ibforecast sign --new-key"):
        is_signed_by(SHA256, GOOD, public)


def test_an_error_of_the_library_below_is_that_of_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(pem: bytes, *rest: object) -> None:
        raise InternalError("Unknown OpenSSL error.", [])

    monkeypatch.setattr(serialization, "load_pem_private_key", fail)
    with pytest.raises(DataError, match="a private key must be an Ed25519 key in PEM"):
        sign(SHA256, PRIVATE)


def test_a_private_key_with_a_password_is_refused() -> None:
    key = serialization.load_pem_private_key(PRIVATE, None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    with pytest.raises(DataError, match="a private key must be an Ed25519 key in PEM"):
        sign(SHA256, locked)


def test_a_signed_document_may_be_rewritten_by_another_client() -> None:
    explained = sample()
    signed = replace(explained, signature=sign(explained.sha256, PRIVATE))
    again = ExplainedForecast.from_json(json.dumps(json.loads(signed.to_json()), indent=2, sort_keys=True))
    assert again.signature is not None
    assert is_signed_by(again.sha256, again.signature, PUBLIC)


# --- The command ---


def call(*words: object) -> Result:
    return CliRunner().invoke(main, ["sign", *map(str, words)])


def test_the_command_makes_keys_that_sign_and_verify(tmp_path: Path) -> None:
    why, out, name = tmp_path / "why.json", tmp_path / "signed.json", tmp_path / "issuer"
    why.write_text(sample().to_json(), "utf8")
    made = call("--new-key", name, "--json")
    assert made.exit_code == 0
    keys = json.loads(made.stdout)
    assert keys == {"private": f"{name}.pem", "public": f"{name}.pub.pem"}
    assert stat.S_IMODE(Path(keys["private"]).stat().st_mode) == 0o600
    assert call(why, "--key", keys["private"], "--out", out).exit_code == 0
    assert ExplainedForecast.from_json(why.read_text("utf8")).signature is None
    signed = ExplainedForecast.from_json(out.read_text("utf8"))
    assert signed.sha256 == sample().sha256
    assert signed.signature is not None
    assert is_signed_by(signed.sha256, signed.signature, Path(keys["public"]).read_bytes())
    # Without --out the file itself is rewritten, and signing again with another key replaces the signature.
    (tmp_path / "other.pem").write_bytes(PRIVATE)
    assert call(out, "--key", tmp_path / "other.pem").exit_code == 0
    again = ExplainedForecast.from_json(out.read_text("utf8"))
    assert again.signature == sign(signed.sha256, PRIVATE)


def test_the_command_does_not_replace_a_key(tmp_path: Path) -> None:
    (tmp_path / "issuer.pub.pem").write_text("precious")
    refused = call("--new-key", tmp_path / "issuer")
    assert isinstance(refused.exception, UsageError)
    assert "must not replace what is there" in str(refused.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["issuer.pub.pem"]


def test_the_command_refuses_a_false_document_and_missing_arguments(tmp_path: Path) -> None:
    why, key = tmp_path / "why.json", tmp_path / "issuer.pem"
    key.write_bytes(PRIVATE)
    lie = json.loads(sample().to_json())
    lie["forecast"][0][0] += 1
    why.write_text(json.dumps(lie))
    for words, message in (
        ((why, "--key", key), "must match its fingerprint"),
        ((tmp_path / "none.json", "--key", key), "an explanation must be a file"),
        ((why,), "signing needs an explanation and a private key"),
        (("--key", key), "signing needs an explanation and a private key"),
    ):
        refused = call(*words)
        assert isinstance(refused.exception, IBForecastError)
        assert message in str(refused.exception)
    assert json.loads(why.read_text()) == lie
