import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.auth.failure import OAuthError
from mcprelay.auth.registration import Registration
from mcprelay.auth.token import (
    ID_JAG,
    authenticate,
    client_credentials_form,
    identity_form,
    jwt_bearer_form,
    read_grant,
    read_token,
    refresh_form,
)

GOOD = {"access_token": "at", "token_type": "Bearer"}


def read(asked=(), **members):
    return read_token(json.dumps({**GOOD, **members}).encode(), asked=asked, now=1000.0)


def client(method: str, secret: str | None = "se:cr et") -> Registration:
    return Registration(issuer="i", client_id="a b/c", client_secret=secret, method=method)


def test_basic_authentication_encodes_each_half_before_they_meet():
    form, headers = authenticate({"grant_type": "x"}, client("client_secret_basic"))
    assert form == {"grant_type": "x", "client_id": "a b/c"}
    assert headers == {"Authorization": "Basic YSUyMGIlMkZjOnNlJTNBY3IlMjBldA=="}


def test_the_other_methods_put_the_client_into_the_form():
    assert authenticate({}, client("client_secret_post")) == ({"client_id": "a b/c", "client_secret": "se:cr et"}, {})
    assert authenticate({}, client("none", None)) == ({"client_id": "a b/c"}, {})
    form, headers = authenticate({}, client("private_key_jwt"), assertion="a.b.c")
    assert "client_id" not in form
    assert form["client_assertion"] == "a.b.c"
    assert headers == {}


def test_forms_hold_resource_and_scope_only_when_there_are_any():
    assert refresh_form("r", resource=None) == {"grant_type": "refresh_token", "refresh_token": "r"}
    assert client_credentials_form(scope=["a", "b"], resource="x") == {
        "grant_type": "client_credentials",
        "resource": "x",
        "scope": "a b",
    }
    assert jwt_bearer_form("j", scope=(), resource=None) == {
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "assertion": "j",
    }
    assert identity_form("id", "t", audience="as", resource="r", scope=())["requested_token_type"] == ID_JAG


def test_a_token_is_read_with_what_the_server_says_of_it():
    found = read(expires_in=3600, refresh_token="rt", scope="a b")
    assert (found.expires_at, found.refresh_token, found.scope) == (4600.0, "rt", ("a", "b"))
    assert read(asked=("x",)).scope == ("x",)
    assert read(asked=("x",), scope="").scope == ("x",)


@pytest.mark.parametrize("kind", ["bearer", "BEARER", "Bearer"])
def test_the_type_of_a_token_has_no_case(kind: str):
    assert read(token_type=kind).scheme == "Bearer"
    assert read(token_type="dpop").scheme == "DPoP"


@pytest.mark.parametrize(
    ("given", "expires"),
    [
        ("60", 1060.0),
        (0, 1000.0),
        (None, None),
        (-5, None),
        ("soon", None),
        ("inf", None),
        ("nan", None),
        (1e30, None),
        ([], None),
        (True, 1001.0),
    ],
)
def test_a_lifetime_that_makes_no_sense_counts_as_not_said(given, expires):
    assert read(expires_in=given).expires_at == expires


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"access_token": None}, "without an access_token"),
        ({"access_token": ""}, "without an access_token"),
        ({"access_token": 5}, "that no header can carry"),
        ({"access_token": "a\r\nX-Evil: 1"}, "that no header can carry"),
        ({"access_token": "a b"}, "that no header can carry"),
        ({"access_token": "tökén"}, "that no header can carry"),
        ({"refresh_token": "a\nb"}, "under refresh_token a text that no header can carry"),
        ({"token_type": None}, "only Bearer and DPoP"),
        ({"token_type": "mac"}, "only Bearer and DPoP"),
        ({"token_type": ["Bearer"]}, "only Bearer and DPoP"),
    ],
)
def test_an_answer_without_a_token_that_can_be_shown_is_refused(members: dict, reason: str):
    with pytest.raises(ValueError, match=reason):
        read(**members)


@given(st.binary(max_size=200))
def test_no_bytes_do_more_to_the_readers_than_a_value_error(body: bytes):
    OAuthError.read(body)
    for reader in (lambda: read_token(body, asked=(), now=0.0), lambda: read_grant(body)):
        with pytest.raises(ValueError):
            reader()


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "access_token",
                        "token_type",
                        "expires_in",
                        "scope",
                        "refresh_token",
                        "error",
                        "error_description",
                        "issued_token_type",
                    ]
                ),
                inner,
                max_size=5,
            )
        ),
    )
)
def test_no_json_does_more_to_the_readers_than_a_value_error(value):
    body = json.dumps(value).encode()
    OAuthError.read(body)
    for reader in (lambda: read_token(body, asked=(), now=0.0), lambda: read_grant(body)):
        with contextlib.suppress(ValueError):
            reader()


def test_errors_are_cleaned_of_what_a_reader_cannot_see():
    found = OAuthError.read(
        json.dumps({"error": "invalid\n_grant", "error_description": "a\u202eb" + "x" * 500}).encode()
    )
    assert found.error == "invalid _grant"
    assert "\u202e" not in found.description
    assert len(found.description) < 210
    assert OAuthError.read(b"{}") is None
    assert OAuthError.read(b'{"error": {"code": 1}}') is None


def test_a_grant_is_one_of_the_right_type():
    body = {"access_token": "jag", "issued_token_type": ID_JAG, "token_type": "N_A"}
    assert read_grant(json.dumps(body).encode()) == "jag"
    with pytest.raises(ValueError, match="instead of urn:ietf:params:oauth:token-type:id-jag"):
        read_grant(json.dumps({**body, "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}).encode())
