"""A child that ends in the middle of what it says (real processes)."""

import pytest

from mcprelay import ConnectFailed, ConnectionLost, Evidence
from tests.client.peer import LEGACY, fresh

SERVER = r"""
while read -r line; do
  case $line in *'"id":'*) id=${line#*'"id":'}; id=${id%%[,\}]*} ;; *) continue ;; esac
  case $line in
    *server/discover*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}\n' "$id" ;;
    *'"initialize"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25",' "$id"
      printf '"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}\n' ;;
    *) echo 'out of memory' >&2; printf 'LAST' "$id"; exit 3 ;;
  esac
done
"""


def dying(words):
    """A server whose last words these are, without a line end."""
    return ["sh", "-c", SERVER.replace("LAST", words)]


@pytest.mark.parametrize(
    "words",
    [
        '{"jsonrpc":"2.0","id":%s,"resu',
        '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"half of i',
        '{"jsonrpc":"2.0",',
        "",
    ],
)
async def test_a_child_that_dies_in_the_middle_of_its_answer_is_told_with_exit_code_and_last_words(words):
    async with fresh(dying(words)) as client:
        with pytest.raises(ConnectionLost, match="exited with code 3") as caught:
            await client.call_tool("x")
        assert caught.value.exit_code == 3
        assert "out of memory" in caught.value.stderr
        assert caught.value.evidence is Evidence.MAYBE_SENT


async def test_a_last_answer_that_is_whole_counts_though_its_line_has_no_end():
    words = '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[{"type":"text","text":"done"}]}}'
    async with fresh(dying(words)) as client:
        assert (await client.call_tool("x")).text == "done"


async def test_a_banner_without_a_line_end_is_told_when_the_child_ended_after_it():
    with pytest.raises(ConnectFailed, match="usage: server") as caught:
        await fresh(["sh", "-c", "printf 'usage: server FILE'; exit 2"]).connect()
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            "echo 'first line' >&2; echo 'no such module' >&2; exit 3",
            "exited with code 3; its last words: no such module",
        ),
        ("exec 0<&-; echo 'no such module' >&2; exit 3", "exited with code 3; its last words: no such module"),
        ("printf 'usage'; echo 'no such module' >&2; exit 3", "its last words: no such module; what the server said"),
        ("exit 3", "exited with code 3"),
    ],
)
@pytest.mark.parametrize("revision", [None, LEGACY])
async def test_a_child_that_ends_at_its_start_says_why_in_the_error_itself(script, said, revision):
    with pytest.raises(ConnectFailed) as caught:
        await fresh(["sh", "-c", script], revision=revision).connect()
    text = str(caught.value)
    assert said in text
    assert text.isprintable()
    assert text.count("exited with code 3") == 1
    assert text.count("no such module") == ("no such module" in script)
    assert "first line" not in text
    assert ("first line" in script) == any("first line" in note for note in getattr(caught.value, "__notes__", ()))


async def test_a_child_that_ends_in_a_call_says_why_in_the_error_itself():
    async with fresh(dying("")) as client:
        with pytest.raises(ConnectionLost) as caught:
            await client.call_tool("x")
    assert "exited with code 3; its last words: out of memory; the request may have been" in str(caught.value)


async def test_who_listens_in_a_session_is_told_how_the_child_ended():
    async with fresh(dying(""), revision=LEGACY) as client:
        async with client.listen(tools=True) as events:
            with pytest.raises(ConnectionLost):
                await client.call_tool("x")
            with pytest.raises(ConnectionLost, match="listening: the server's process exited with code 3") as caught:
                await anext(events)
        assert caught.value.exit_code == 3
        assert "out of memory" in caught.value.stderr
