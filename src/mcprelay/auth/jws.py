"""Signing: JSON Web Signatures in the compact form, and the keys for them.

Only makes signatures and never reads one: a client signs assertions (RFC 7523) and proofs of possession (RFC 9449), and
verifies no token. That is why this is here, on `cryptography`, and no library for tokens is required. `cryptography`
is imported when the first key is made or read.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from mcprelay.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

_CURVES = {
    "secp256r1": ("ES256", "P-256", 32),
    "secp384r1": ("ES384", "P-384", 48),
    "secp521r1": ("ES512", "P-521", 66),
}
_RSA = ("RS256", "PS256", "RS384", "PS384", "RS512", "PS512")

PREFERRED = ("ES256", "EdDSA", "ES384", "ES512", *_RSA)
"""The algorithms there are, in the order in which a new key is chosen."""


def encode(data: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def digest(text: str) -> str:
    """base64url of the SHA-256 of a text: `code_challenge` and `ath`."""
    return encode(hashlib.sha256(text.encode("utf-8")).digest())


class SigningKey:
    """A private key that signs. Its `repr` shows the algorithm alone.

    Args:
        pem: The private key as PEM, without a passphrase.
        algorithm: The JWS algorithm, or None for the usual one of this kind of key.
        key_id: The `kid` to write into headers, or None.

    Raises:
        ConfigurationError: It is no private key that can be read, or not one for the algorithm.
    """

    def __init__(self, pem: str, *, algorithm: str | None = None, key_id: str | None = None) -> None:
        self._key = _read(pem)
        possible = _algorithms(self._key)
        if algorithm is not None and algorithm not in possible:
            raise ConfigurationError(
                f"algorithm={algorithm!r} does not fit the private key, which signs {', '.join(possible)}"
            )
        self.algorithms = possible if algorithm is None else (algorithm,)
        self.key_id = key_id
        self._public: dict[str, str] | None = None

    def __repr__(self) -> str:
        return f"SigningKey({self.algorithms[0]})"

    def choose(self, supported: Collection[str] | None) -> str:
        """The algorithm to sign with for a peer that verifies `supported`, None when it does not say.

        Raises:
            ConfigurationError: There is none in common.
        """
        for algorithm in self.algorithms:
            if not supported or algorithm in supported:
                return algorithm
        raise ConfigurationError(
            f"the private key signs {', '.join(self.algorithms)}, and the authorization server verifies "
            f"{', '.join(sorted(supported or ()))} only"
        )

    def sign(self, header: Mapping[str, Any], claims: Mapping[str, Any], *, algorithm: str) -> str:
        """A compact JWS over the claims. `alg`, and `kid` where there is one, come first in the header."""
        known = {"alg": algorithm} | ({"kid": self.key_id} if self.key_id else {})
        encoded = [encode(msgspec.json.encode(part)) for part in ({**known, **header}, claims)]
        message = ".".join(encoded)
        return f"{message}.{encode(_signature(self._key, message.encode('ascii'), algorithm))}"

    def public(self) -> dict[str, str]:
        """The public half as a JWK with the required members alone."""
        if self._public is None:
            self._public = _jwk(self._key)
        return self._public

    def thumbprint(self) -> str:
        """The JWK thumbprint of RFC 7638."""
        return encode(hashlib.sha256(msgspec.json.encode(dict(sorted(self.public().items())))).digest())


def new_key(supported: Collection[str] | None = None) -> tuple[str, str] | None:
    """A fresh private key as PEM and its algorithm, the best of those supported; None when none of them is known.

    Args:
        supported: JWS algorithms that the peer verifies, or None when it does not say.
    """
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    algorithm = next((name for name in PREFERRED if not supported or name in supported), None)
    key: PrivateKeyTypes
    if algorithm is None:
        return None
    if algorithm == "EdDSA":
        key = ed25519.Ed25519PrivateKey.generate()
    elif algorithm in _RSA:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    else:
        curves: dict[str, ec.EllipticCurve] = {
            "ES256": ec.SECP256R1(),
            "ES384": ec.SECP384R1(),
            "ES512": ec.SECP521R1(),
        }
        key = ec.generate_private_key(curves[algorithm])
    return _written(key), algorithm


def _written(key: PrivateKeyTypes) -> str:
    from cryptography.hazmat.primitives import serialization as form

    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()).decode("ascii")


def _read(pem: str) -> PrivateKeyTypes:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        return load_pem_private_key(pem.encode("utf-8"), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # The cause is left out on purpose: some of its messages quote the input.
        raise ConfigurationError("private_key is not a private key in PEM form without a passphrase") from None


def _algorithms(key: PrivateKeyTypes) -> tuple[str, ...]:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name in _CURVES:
        return (_CURVES[key.curve.name][0],)
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return ("EdDSA",)
    if isinstance(key, rsa.RSAPrivateKey):
        if key.key_size < 2048:
            raise ConfigurationError(f"private_key is an RSA key of {key.key_size} bits; 2048 are the least")
        return _RSA
    raise ConfigurationError("private_key is of a kind that signs no token: use RSA, Ed25519, P-256, P-384 or P-521")


def _signature(key: PrivateKeyTypes, message: bytes, algorithm: str) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key.sign(message)
    hashing = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}[algorithm[2:]]
    if isinstance(key, ec.EllipticCurvePrivateKey):
        size = _CURVES[key.curve.name][2]
        r, s = decode_dss_signature(key.sign(message, ec.ECDSA(hashing)))
        return r.to_bytes(size, "big") + s.to_bytes(size, "big")
    assert isinstance(key, rsa.RSAPrivateKey)  # noqa: S101 - `_algorithms` lets no other kind through
    if algorithm.startswith("PS"):
        return key.sign(message, padding.PSS(padding.MGF1(hashing), hashing.digest_size), hashing)
    return key.sign(message, padding.PKCS1v15(), hashing)


def _jwk(key: PrivateKeyTypes) -> dict[str, str]:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if isinstance(key, ec.EllipticCurvePrivateKey):
        _, name, size = _CURVES[key.curve.name]
        point = key.public_key().public_numbers()
        return {"crv": name, "kty": "EC", "x": _number(point.x, size), "y": _number(point.y, size)}
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return {"crv": "Ed25519", "kty": "OKP", "x": encode(key.public_key().public_bytes_raw())}
    assert isinstance(key, rsa.RSAPrivateKey)  # noqa: S101 - `_algorithms` lets no other kind through
    numbers = key.public_key().public_numbers()
    return {"e": _number(numbers.e), "kty": "RSA", "n": _number(numbers.n)}


def _number(value: int, size: int | None = None) -> str:
    return encode(value.to_bytes(size or (value.bit_length() + 7) // 8, "big"))
