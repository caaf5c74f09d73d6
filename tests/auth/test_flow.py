from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.auth.discovery import ServerMetadata
from mcprelay.auth.flow import Rejected, answer, ask, choose_scopes, pkce_refusal, same_redirect, scopes, state_of

ISSUER = "https://as.example.com"
BACK = "http://127.0.0.1:1234/callback"


def metadata(**more) -> ServerMetadata:
    return ServerMetadata(**{"issuer": ISSUER, "authorization_endpoint": ISSUER + "/authorize", **more})


def question(**more):
    asked = {
        "client_id": "c",
        "redirect_uri": BACK,
        "scope": (),
        "resource": "https://x/mcp",
        "state": "s" * 43,
        "verifier": "v" * 64,
    }
    server = metadata(authorization_response_iss_parameter_supported=more.pop("iss_supported", None))
    return ask(server, **{**asked, **more})


def callback(**parameters: str) -> str:
    return f"{BACK}?{urlencode({'code': 'abc', 'state': 's' * 43, **parameters})}"


def test_the_request_holds_what_it_must():
    found = {name: values[0] for name, values in parse_qs(urlsplit(question(scope=("a", "b")).url).query).items()}
    assert found == {
        "response_type": "code",
        "client_id": "c",
        "redirect_uri": BACK,
        "state": "s" * 43,
        "code_challenge": found["code_challenge"],
        "code_challenge_method": "S256",
        "resource": "https://x/mcp",
        "scope": "a b",
    }


def test_parameters_that_have_no_value_are_left_out():
    found = parse_qs(urlsplit(question(resource=None).url).query)
    assert {"resource", "scope", "prompt", "dpop_jkt"} & set(found) == set()


def test_a_query_of_the_endpoint_is_kept():
    url = ask(
        metadata(authorization_endpoint=ISSUER + "/authorize?tenant=a"),
        client_id="c",
        redirect_uri=BACK,
        scope=(),
        resource=None,
        state="s",
        verifier="v",
    ).url
    assert url.startswith(ISSUER + "/authorize?tenant=a&response_type=code")


def test_a_question_shows_nothing_of_itself():
    assert repr(question()) == "Question(…)"


# ------------------------------------------------------------------------------------------------------------- answers


def test_an_answer_with_the_right_state_gives_its_code():
    assert answer(question(), callback()) == "abc"


@pytest.mark.clause("auth.iss-validated", "auth.iss-not-normalized")
@pytest.mark.parametrize(
    ("advertised", "iss", "refused"),
    [
        (True, ISSUER, None),
        (True, None, "iss is missing, though advertised"),
        (True, "https://evil.example", "comes from the issuer"),
        (None, ISSUER, None),
        (None, None, None),
        (None, "https://evil.example", "comes from the issuer"),
        (False, "https://evil.example", "comes from the issuer"),
        (True, ISSUER + "/", "comes from the issuer"),
        (True, ISSUER.upper(), "comes from the issuer"),
        (True, ISSUER + ":443", "comes from the issuer"),
        (None, "", "comes from the issuer"),
    ],
)
def test_the_issuer_of_an_answer_is_compared_as_the_table_says(advertised, iss, refused):
    url = callback() if iss is None else callback(iss=iss)
    if refused is None:
        assert answer(question(iss_supported=advertised), url) == "abc"
    else:
        with pytest.raises(Rejected, match=refused):
            answer(question(iss_supported=advertised), url)


@pytest.mark.clause("auth.iss-error")
def test_an_error_of_another_issuer_is_not_shown():
    with pytest.raises(Rejected) as caught:
        answer(
            question(), callback(iss="https://evil.example", error="access_denied", error_description="call 555-0100")
        )
    assert "555" not in str(caught.value)
    assert "access_denied" not in str(caught.value)
    assert caught.value.error is None


def test_an_error_without_the_right_state_is_not_shown():
    with pytest.raises(Rejected, match="state is missing") as caught:
        answer(question(), callback(state="other", error="access_denied", error_description="call 555-0100"))
    assert "555" not in str(caught.value)


def test_an_error_of_the_server_itself_is_shown_cleaned():
    with pytest.raises(Rejected, match=r"answered access_denied: no +thanks") as caught:
        answer(question(), callback(error="access_denied", error_description="no\u202e\nthanks"))
    assert caught.value.error.error == "access_denied"


@pytest.mark.clause("auth-security.state")
@pytest.mark.parametrize("state", ["", "s", "S" * 43, "s" * 44])
def test_an_answer_with_another_state_is_refused(state: str):
    with pytest.raises(Rejected, match="state"):
        answer(question(), callback(state=state))


@pytest.mark.parametrize("extra", ["&code=def", "&state=x", "&iss=a&iss=b"])
def test_a_parameter_that_comes_twice_spoils_the_answer(extra: str):
    with pytest.raises(Rejected, match="twice"):
        answer(question(), callback() + extra)


@pytest.mark.parametrize("url", [BACK, BACK + "?state=" + "s" * 43, BACK + "?code=&state=" + "s" * 43])
def test_an_answer_without_a_code_is_refused(url: str):
    with pytest.raises(Rejected):
        answer(question(), url)


@given(st.text())
def test_no_text_does_more_to_an_answer_than_be_rejected(text: str):
    with pytest.raises(Rejected):
        answer(question(), text)
    state_of(text)
    same_redirect(text, BACK)


# -------------------------------------------------------------------------------------------------------------- scopes


@given(st.text())
def test_scopes_are_words_that_a_parameter_can_hold(text: str):
    for scope in scopes(text):
        assert scope.isascii()
        assert not {" ", '"', "\\"} & set(scope)


def test_scopes_are_taken_once_and_in_order():
    assert scopes("b a  b") == ("b", "a")
    assert scopes(["a b", "c"]) == ("a", "b", "c")
    assert scopes(None) == ()


@pytest.mark.clause("auth.scope-order")
@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ({}, ""),
        ({"challenged": ["a"], "advertised": ["x", "y"]}, "a"),
        ({"advertised": ["x", "y"]}, "x y"),
        ({"configured": ["c"], "advertised": ["x"]}, "c"),
        ({"configured": ["c"], "challenged": ["a"]}, "c a"),
        ({"before": ["b"], "challenged": ["a"]}, "b a"),
        ({"before": ["b"], "advertised": ["x"]}, "b"),
        ({"challenged": ["a"], "offered": ["a", "offline_access"]}, "a offline_access"),
        ({"challenged": ["a"], "offered": ["a"]}, "a"),
        ({"challenged": ["a", "offline_access"], "offered": ["a"]}, "a"),
        ({"challenged": ["a", "offline_access"], "offered": None}, "a"),
        ({"offered": ["offline_access"]}, ""),
        ({"challenged": ["a"], "offered": ["offline_access"], "renewal": "unwanted"}, "a"),
    ],
)
def test_scopes_are_chosen_in_the_specified_order(given: dict, chosen: str):
    assert " ".join(choose_scopes(**given)) == chosen


# ---------------------------------------------------------------------------------------------------------------- PKCE


def test_a_server_that_does_not_say_that_it_supports_pkce_is_refused_unless_assumed():
    assert "code_challenge_methods_supported is missing" in (pkce_refusal(metadata(), policy="advertised") or "")
    assert pkce_refusal(metadata(), policy="assumed") is None
    assert pkce_refusal(metadata(code_challenge_methods_supported=("plain", "S256")), policy="advertised") is None


@pytest.mark.clause("auth-security.s256")
@pytest.mark.parametrize("policy", ["advertised", "assumed"])
@pytest.mark.parametrize("methods", [("plain",), ()])
def test_a_server_without_s256_is_refused_whatever_is_assumed(methods, policy):
    assert "S256 is required" in (pkce_refusal(metadata(code_challenge_methods_supported=methods), policy=policy) or "")
