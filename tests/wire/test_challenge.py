import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcprelay.wire.challenge import Challenge, find, format_challenge, format_challenges, parse

BEARER = (
    'Bearer resource_metadata="https://api.example/.well-known/oauth-protected-resource/mcp", '
    'error="insufficient_scope", scope="files:read files:write"'
)


@pytest.mark.parametrize(
    ("value", "challenges"),
    [
        ("", []),
        ("  ,  ,", []),
        ("Bearer", [Challenge("Bearer")]),
        ("Negotiate, Basic", [Challenge("Negotiate"), Challenge("Basic")]),
        ('Basic realm="simple"', [Challenge("Basic", {"realm": "simple"})]),
        (
            'Basic realm="simple", Newauth realm="apps", type=1, title="Login to \\"apps\\""',
            [
                Challenge("Basic", {"realm": "simple"}),
                Challenge("Newauth", {"realm": "apps", "type": "1", "title": 'Login to "apps"'}),
            ],
        ),
        ("Negotiate YWJj/+~.-_==", [Challenge("Negotiate", token68="YWJj/+~.-_==")]),
        (
            'Negotiate YWJj , Basic realm="x"',
            [Challenge("Negotiate", token68="YWJj"), Challenge("Basic", {"realm": "x"})],
        ),
        ('Negotiate,Basic realm="x"', [Challenge("Negotiate"), Challenge("Basic", {"realm": "x"})]),
        ('Bearer realm = "x" ,error\t=\t"y"', [Challenge("Bearer", {"realm": "x", "error": "y"})]),
        ('Bearer REALM="x", Error="y"', [Challenge("Bearer", {"realm": "x", "error": "y"})]),
        ('Bearer realm="a, Basic b=c"', [Challenge("Bearer", {"realm": "a, Basic b=c"})]),
        ('Bearer realm="x", realm="y"', [Challenge("Bearer", {"realm": "x"})]),
        ('Bearer realm=""', [Challenge("Bearer", {"realm": ""})]),
        (', Bearer ,,realm="x",, Basic', [Challenge("Bearer", {"realm": "x"}), Challenge("Basic")]),
        ("Bearer realm=, Basic", [Challenge("Bearer", token68="realm="), Challenge("Basic")]),  # so says the grammar
        # what servers send although the grammar has it otherwise
        (
            "Bearer resource_metadata=https://a.example/x?y=1",
            [Challenge("Bearer", {"resource_metadata": "https://a.example/x?y=1"})],
        ),
        ('Bearer realm="x" error="y"', [Challenge("Bearer", {"realm": "x", "error": "y"})]),
        ('Bearer realm="unterminated', [Challenge("Bearer", {"realm": "unterminated"})]),
        ('Bearer realm="escape at the end\\', [Challenge("Bearer", {"realm": "escape at the end"})]),
        ("Bearer error=x, realm=", [Challenge("Bearer", {"error": "x", "realm": ""})]),
        # what is passed over
        ('realm="x"', []),
        ('realm = "x", Basic', [Challenge("Basic")]),
        ('"quoted, with commas", Basic', [Challenge("Basic")]),
        ("@@@, Basic", [Challenge("Basic")]),
        ('Bearer realm="x", @@@, Basic', [Challenge("Bearer", {"realm": "x"}), Challenge("Basic")]),
        ("Bear(er) realm, Basic", [Challenge("Basic")]),
    ],
)
def test_a_header_value_is_read_as_its_challenges(value, challenges):
    assert list(parse(value)) == challenges


def test_several_headers_are_read_as_one_list():
    assert parse(["Basic", 'Bearer realm="x"']) == (Challenge("Basic"), Challenge("Bearer", {"realm": "x"}))


def test_a_challenge_is_found_by_its_scheme_in_any_case():
    found = find(parse(["Basic", BEARER]), "bearer")
    assert found.params["scope"] == "files:read files:write"
    assert find(parse("Basic"), "Bearer") is None


@given(st.text())
@example('"' * 1000)
@example("a=" * 1000)
@example('a "\\')
def test_no_text_makes_reading_fail(text):
    for challenge in parse(text):
        assert challenge.scheme in text


@given(st.text(alphabet='aB1 \t,="\\/;@=', max_size=60))
def test_what_was_read_can_be_written_and_read_again(text):
    challenges = parse(text)
    assert parse(format_challenges(challenges)) == challenges


@pytest.mark.parametrize(
    "hostile",
    ['a "' * 30_000, "a=" * 50_000, ' "\\' * 30_000, "a, " * 30_000, "a a " * 30_000, "=" * 100_000, "a" * 100_000],
)
def test_a_hostile_header_is_read_in_one_pass(hostile):
    assert len(parse(hostile)) <= len(hostile)


TOKEN = st.from_regex(r"[A-Za-z][A-Za-z0-9\-]{0,10}", fullmatch=True)
QUOTABLE = st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126))
CHALLENGE = st.builds(Challenge, TOKEN, st.dictionaries(TOKEN.map(str.lower), QUOTABLE, max_size=4)) | st.builds(
    Challenge, TOKEN, token68=st.from_regex(r"[A-Za-z0-9\-._~+/]+={0,2}", fullmatch=True)
)


@given(st.lists(CHALLENGE, max_size=4))
def test_what_is_formatted_is_read_back(challenges):
    assert list(parse(format_challenges(challenges))) == challenges


@given(TOKEN, st.text())
def test_a_value_never_ends_its_header_or_its_string(scheme, value):
    text = format_challenge(Challenge(scheme, {"error_description": value}))
    assert text.isascii()
    assert text.isprintable() or "\t" in value
    assert len(parse(text)) == 1
    assert list(parse(text)[0].params) == ["error_description"]


def test_a_challenge_is_written_with_quoted_values():
    challenge = parse(BEARER)[0]
    assert str(challenge) == BEARER
    assert str(Challenge("Bearer", {"a": 'say "hi" \\ \r\nX: 1 é\x7f'})) == 'Bearer a="say \\"hi\\" \\\\   X: 1 ? "'
    assert str(Challenge("Bearer")) == "Bearer"
    assert str(Challenge("Negotiate", token68="YWJj==")) == "Negotiate YWJj=="


@pytest.mark.parametrize(
    "challenge",
    [
        Challenge("Bea rer"),
        Challenge(""),
        Challenge("Bearer", {"a b": "x"}),
        Challenge("Bearer", {"a\r\n": "x"}),
        Challenge("Bearer", token68="a b"),
        Challenge("Bearer", token68="a\r\nX: 1"),
        Challenge("Bearer", token68=""),
        Challenge("Bearer", {"a": "b"}, "YWJj"),
    ],
)
def test_a_name_that_is_no_token_is_a_mistake_of_the_program(challenge):
    with pytest.raises(ValueError, match="token"):
        format_challenge(challenge)
