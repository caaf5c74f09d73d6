import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.auth import Registered
from mcprelay.auth.discovery import ServerMetadata
from mcprelay.auth.registration import (
    Registration,
    application_type,
    bind,
    check_document_url,
    document,
    from_document,
    read,
    request,
)
from mcprelay.errors import ConfigurationError

ISSUER = "https://as.example.com"
LOOPBACK = "http://127.0.0.1:1234/callback"


def metadata(*methods: str, **more) -> ServerMetadata:
    return ServerMetadata(issuer=ISSUER, token_endpoint_auth_methods_supported=methods or None, **more)


@pytest.mark.clause("auth-registration.native", "auth-registration.web")
@pytest.mark.parametrize(
    ("uris", "kind"),
    [
        ([LOOPBACK], "native"),
        (["http://localhost/cb"], "native"),
        (["https://localhost/cb"], "native"),
        (["com.example.app:/callback"], "native"),
        (["https://app.example.com/cb"], "web"),
        (["https://app.example.com/cb", LOOPBACK], "native"),
    ],
)
def test_the_application_type_follows_from_the_redirect_uris(uris, kind):
    assert application_type(uris) == kind


@pytest.mark.clause("auth-registration.cimd-client-id")
@pytest.mark.parametrize(
    "url",
    [
        "http://app.example.com/client.json",
        "https://app.example.com",
        "https://app.example.com/",
        "https://app.example.com/../client.json",
        "https://app.example.com/c#x",
        "https://u:p@app.example.com/c",
        "nonsense",
    ],
)
def test_a_document_needs_an_https_url_with_a_path(url):
    with pytest.raises(ConfigurationError, match="client_document="):
        check_document_url(url)


def test_the_document_to_publish_names_itself():
    url = "https://app.example.com/client.json"
    found = document(url, name="Ada's agent", redirect_uris=[LOOPBACK], logo_uri="https://app.example.com/logo.png")
    assert found["client_id"] == url
    assert found["redirect_uris"] == [LOOPBACK]
    assert found["application_type"] == "native"
    assert found["logo_uri"].endswith("png")


def test_a_document_counts_only_where_it_is_read():
    url = "https://app.example.com/client.json"
    assert from_document(url, metadata()) is None
    assert from_document(url, metadata(client_id_metadata_document_supported=False)) is None
    found = from_document(url, metadata(client_id_metadata_document_supported=True))
    assert (found.client_id, found.method) == (url, "none")


@pytest.mark.parametrize(
    ("client", "methods", "method"),
    [
        ({"client_secret": "s"}, (), "client_secret_basic"),
        ({"client_secret": "s"}, ("client_secret_post",), "client_secret_post"),
        ({"client_secret": "s"}, ("client_secret_post", "client_secret_basic"), "client_secret_basic"),
        ({"client_secret": "s", "method": "client_secret_post"}, ("client_secret_basic",), "client_secret_post"),
        ({"client_secret": "s", "private_key": "k"}, ("client_secret_basic", "private_key_jwt"), "private_key_jwt"),
        ({}, (), "none"),
        ({}, ("client_secret_basic",), "none"),
    ],
)
def test_the_method_is_one_that_both_sides_can(client, methods, method):
    assert bind(Registered(client_id="c", **client), metadata(*methods)).method == method


def test_a_pinned_issuer_counts_like_a_named_one():
    with pytest.raises(ConfigurationError, match="never shown to the other"):
        bind(Registered(client_id="c"), metadata(), pinned="https://other.example")
    bind(Registered(client_id="c"), metadata(), pinned=ISSUER)


@pytest.mark.parametrize(
    ("methods", "asked"),
    [
        ((), "client_secret_basic"),
        (("none", "client_secret_post"), "none"),
        (("client_secret_post",), "client_secret_post"),
        (("private_key_jwt",), "none"),
    ],
)
def test_a_client_on_a_persons_machine_asks_for_no_secret_where_it_can(methods, asked):
    body = request(metadata(*methods), name="n", redirect_uris=[LOOPBACK], grant_types=["authorization_code"])
    assert body["token_endpoint_auth_method"] == asked


def test_a_client_without_redirects_asks_for_no_answers():
    body = request(
        metadata(), name="n", redirect_uris=[], grant_types=["urn:x"], dpop="bound", more={"client_name": "m"}
    )
    assert "redirect_uris" not in body
    assert "response_types" not in body
    assert body["dpop_bound_access_tokens"] is True
    assert body["client_name"] == "m"


@pytest.mark.parametrize(
    ("asked", "answer", "method"),
    [
        ("none", {}, "none"),
        ("none", {"client_secret": "s"}, "none"),
        ("none", {"client_secret": "s", "token_endpoint_auth_method": "client_secret_post"}, "client_secret_post"),
        ("client_secret_basic", {"client_secret": "s"}, "client_secret_basic"),
        ("client_secret_basic", {}, "none"),
        ("client_secret_basic", {"token_endpoint_auth_method": "none"}, "none"),
        ("client_secret_basic", {"token_endpoint_auth_method": "client_secret_post"}, "none"),
    ],
)
def test_the_server_may_choose_another_method_than_was_asked(asked, answer, method):
    body = json.dumps({"client_id": "c", **answer}).encode()
    found = read(body, asked={"token_endpoint_auth_method": asked, "redirect_uris": [LOOPBACK]}, metadata=metadata())
    assert found.method == method
    assert found.redirect_uris == (LOOPBACK,)
    assert found.issuer == ISSUER


@given(st.binary(max_size=200))
def test_no_bytes_do_more_to_the_reader_than_a_value_error(body):
    with pytest.raises(ValueError):
        read(body, asked={"token_endpoint_auth_method": "none"}, metadata=metadata())


def test_a_registration_serves_its_redirect_uris_until_its_secret_expires():
    found = Registration(issuer=ISSUER, client_id="c", redirect_uris=(LOOPBACK,), expires_at=100.0)
    assert found.serves(LOOPBACK, now=99.0)
    assert not found.serves(LOOPBACK, now=100.0)
    assert not found.serves("http://127.0.0.1:9/callback", now=1.0)
    assert found.serves(None, now=1.0)


def test_secrets_are_in_no_repr():
    for thing in (
        Registered(client_id="c", client_secret="s3cr3t", private_key="s3cr3t"),
        Registration(issuer=ISSUER, client_id="c", client_secret="s3cr3t"),
    ):
        assert "s3cr3t" not in repr(thing) + str(thing) + str(thing.__rich_repr__())
