import base64
import json

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from mcprelay.auth.jws import PREFERRED, SigningKey, digest, encode, new_key
from mcprelay.errors import ConfigurationError


def pem(key) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


KEYS = {
    "ES256": pem(ec.generate_private_key(ec.SECP256R1())),
    "ES384": pem(ec.generate_private_key(ec.SECP384R1())),
    "ES512": pem(ec.generate_private_key(ec.SECP521R1())),
    "EdDSA": pem(ed25519.Ed25519PrivateKey.generate()),
    "RS256": pem(rsa.generate_private_key(65537, 2048)),
}


@pytest.mark.parametrize("algorithm", PREFERRED)
def test_another_library_verifies_every_algorithm_and_finds_the_public_key_in_the_jwk(algorithm: str):
    source = KEYS.get(algorithm, KEYS["RS256"])
    key = SigningKey(source, algorithm=algorithm, key_id="k1")
    text = key.sign({"typ": "JWT"}, {"iss": "ada", "n": 1}, algorithm=algorithm)
    public = jwt.PyJWK({**key.public(), "alg": algorithm})
    assert jwt.decode(text, public, algorithms=[algorithm]) == {"iss": "ada", "n": 1}
    assert jwt.get_unverified_header(text) == {"alg": algorithm, "typ": "JWT", "kid": "k1"}


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=40) | st.integers(-(2**53), 2**53), max_size=5))
@settings(max_examples=50, deadline=None)
def test_whatever_is_signed_is_what_is_verified(claims: dict):
    key = SigningKey(KEYS["ES256"])
    text = key.sign({}, {**claims, "iss": "x", "exp": 9_999_999_999}, algorithm="ES256")
    public = jwt.PyJWK({**key.public(), "alg": "ES256"})
    options = {
        "verify_signature": True,
        "verify_exp": False,
        "verify_aud": False,
        "verify_iat": False,
        "verify_nbf": False,
        "verify_sub": False,
        "verify_jti": False,
    }
    assert jwt.decode(text, public, algorithms=["ES256"], options=options) == {
        **claims,
        "iss": "x",
        "exp": 9_999_999_999,
    }


def test_the_thumbprint_is_that_of_the_standard():
    """RFC 7638, section 3.1: the key there has no private half, so its JWK is put in place of ours."""
    key = SigningKey(KEYS["RS256"])
    key._public = {
        "kty": "RSA",
        "n": (
            "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3okn"
            "jhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQ"
            "vRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"
        ),
        "e": "AQAB",
    }
    assert key.thumbprint() == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"


def test_digests_are_those_of_the_standards():
    assert digest("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    assert digest("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU") == "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo"


def test_coordinates_keep_their_leading_zeros():
    for _ in range(300):
        key = SigningKey(new_key(["ES256"])[0])
        lengths = {len(base64.urlsafe_b64decode(key.public()[name] + "=")) for name in ("x", "y")}
        assert lengths == {32}


def test_a_signature_of_the_elliptic_kind_has_a_fixed_length():
    key = SigningKey(KEYS["ES256"])
    lengths = {len(key.sign({}, {"n": n}, algorithm="ES256").split(".")[2]) for n in range(100)}
    assert lengths == {86}


@pytest.mark.parametrize("text", ["", "nonsense", "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----"])
def test_a_text_that_is_no_key_is_refused_without_being_quoted(text: str):
    with pytest.raises(ConfigurationError) as caught:
        SigningKey(text)
    assert str(caught.value) == "private_key is not a private key in PEM form without a passphrase"
    assert caught.value.__cause__ is None


def test_keys_that_sign_no_token_are_refused():
    with pytest.raises(ConfigurationError, match="signs no token"):
        SigningKey(pem(ed448.Ed448PrivateKey.generate()))
    with pytest.raises(ConfigurationError, match="signs no token"):
        SigningKey(pem(ec.generate_private_key(ec.SECP256K1())))
    with pytest.raises(ConfigurationError, match="1024 bits"):
        SigningKey(pem(rsa.generate_private_key(65537, 1024)))  # noqa: S505 - refused
    with pytest.raises(ConfigurationError, match="algorithm='RS256' does not fit"):
        SigningKey(KEYS["ES256"], algorithm="RS256")


def test_the_algorithm_is_one_that_both_sides_know():
    key = SigningKey(KEYS["RS256"])
    assert key.choose(None) == "RS256"
    assert key.choose(["ES256", "PS512"]) == "PS512"
    with pytest.raises(ConfigurationError, match="verifies ES256 only"):
        key.choose(["ES256"])


@pytest.mark.parametrize(
    ("supported", "algorithm"),
    [(None, "ES256"), (["RS256", "EdDSA"], "EdDSA"), (["PS256"], "PS256"), (["ES512"], "ES512")],
)
def test_a_new_key_is_of_the_best_algorithm_that_is_supported(supported, algorithm):
    source, found = new_key(supported)
    assert found == algorithm
    assert SigningKey(source, algorithm=algorithm).algorithms == (algorithm,)


def test_there_is_no_new_key_when_nothing_supported_is_known():
    assert new_key(["HS256", "none"]) is None


def test_a_key_shows_nothing_of_itself_but_the_algorithm():
    assert repr(SigningKey(KEYS["ES256"])) == "SigningKey(ES256)"
    assert set(SigningKey(KEYS["RS256"]).public()) == {"kty", "n", "e"}
    assert set(SigningKey(KEYS["ES256"]).public()) == {"kty", "crv", "x", "y"}


@given(st.binary(max_size=64))
def test_encoding_has_no_padding_and_loses_nothing(data: bytes):
    text = encode(data)
    assert "=" not in text
    assert base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)) == data
    assert json.dumps(text)
