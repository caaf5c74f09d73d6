"""Resources and templates: what is refused at decoration, which one answers, and what it is given."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from mcprelay import Complete, DefinitionError, ResourceNotFound, Server
from mcprelay.revisions import ALL, Era
from mcprelay.types import ReadResourceResult, ResourceContents
from tests.server.ask import ask, connected, error, result


async def read(server: Server, uri: str) -> str:
    text: str = (await result(server, "resources/read", {"uri": uri}))["contents"][0]["text"]
    return text


async def test_a_function_is_given_the_uri_and_the_values_of_its_variables_by_their_types():
    server = Server("s")

    @server.resource("user://{name}/posts/{number}{?limit}")
    def posts(number: int, name: str, uri: str, limit: int = 5) -> dict[str, Any]:
        return {"name": name, "number": number, "limit": limit, "uri": uri}

    @server.resource("plain://here")
    def plain(uri: str) -> str:
        return uri

    assert await read(server, "user://ada%20b/posts/7?limit=2") == (
        '{"name":"ada b","number":7,"limit":2,"uri":"user://ada%20b/posts/7?limit=2"}'
    )
    assert '"limit":5' in await read(server, "user://ada/posts/7")
    assert await read(server, "plain://here") == "plain://here"
    wrong = await error(server, "resources/read", {"uri": "user://ada/posts/x"})
    assert (wrong["code"], "number" in wrong["message"]) == (-32602, True)
    assert wrong["data"]["errors"][0]["path"] == "/number"


async def test_a_variable_named_uri_is_the_variable():
    server = Server("s")

    @server.resource("page://{+uri}")
    def page(uri: str) -> str:
        return uri

    assert await read(server, "page://a/b") == "a/b"


async def test_the_exact_uri_wins_over_templates_and_the_most_specific_template_over_others():
    server = Server("s")
    server.add_resource("a://{+rest}", lambda rest: f"rest {rest}", name="rest")
    server.add_resource("a://{x}/{y}", lambda x, y: f"two {x} {y}", name="two")
    server.add_resource("a://fixed/{y}", lambda y: f"fixed {y}", name="fixed")
    server.add_resource("a://fixed/this", lambda: "exact", name="exact")

    assert await read(server, "a://fixed/this") == "exact"
    assert await read(server, "a://fixed/that") == "fixed that"
    assert await read(server, "a://other/that") == "two other that"
    assert await read(server, "a://one") == "rest one"


async def test_match_is_for_what_no_template_says():
    server = Server("s")

    def match(uri: str) -> dict[str, Any] | None:
        name, found, extension = uri.removeprefix("file:///").rpartition(".")
        return {"name": name, "extension": extension} if found else None

    @server.resource("file:///{+name}.{extension}", match=match)
    def file(name: str, extension: str, uri: str) -> str:
        return f"{name} {extension} {uri}"

    @server.resource("odd:all", match=lambda uri: {} if uri.startswith("odd:") else None)
    def odd() -> str:
        return "odd"

    assert await read(server, "file:///a/b.c.txt") == "a/b.c txt file:///a/b.c.txt"
    assert await read(server, "odd:whatever") == "odd"
    assert (await error(server, "resources/read", {"uri": "file:///none"}))["data"] == {"uri": "file:///none"}
    listed = (await result(server, "resources/templates/list"))["resourceTemplates"]
    assert [template["uriTemplate"] for template in listed] == ["file:///{+name}.{extension}", "odd:all"]


@pytest.mark.parametrize(
    ("uri", "function", "message"),
    [
        ("no scheme", lambda: "", r"'no scheme' is no URI \(RFC 3986\).*scheme"),
        ("a://b c", lambda: "", r"position 5 must be written %20"),
        ("a://{", lambda: "", r"URI template 'a://\{', position"),
        ("a://{b}", lambda: "", r"has the variable b, but its function .* has no parameter"),
        ("a://{b}", lambda b, c: "", r"has no variable for the parameter c"),
        ("a://b", lambda c: "", r"put \{c\} into the URI, or give the parameter a default"),
        ("a://b{?q}", lambda q: "", r"may lack the variable q, so the parameter of that name needs a default"),
        ("{b}", lambda b: "", r"cannot name resources"),
        ("a://{b}{c}", lambda b, c: "", r"cannot name resources"),
    ],
)
def test_what_cannot_be_a_resource_is_an_error_at_decoration(uri: str, function: Any, message: str):
    with pytest.raises(DefinitionError, match=message):
        Server("s").add_resource(uri, function, name="r")


def test_a_function_that_takes_any_name_takes_any_variable():
    def anything(**variables: str) -> str:
        return str(variables)

    Server("s").add_resource("a://{b}/{c}", anything)


@pytest.mark.parametrize("revision", ALL.values(), ids=lambda revision: revision.name)
async def test_an_unknown_uri_has_the_code_of_the_revision_and_names_itself(revision: Any):
    server = Server("s")
    server.add_resource("a://b/{c}", _missing, name="r")
    async with connected(server) as client:
        if revision.era is Era.HANDSHAKE:
            hello = {
                "protocolVersion": revision.name,
                "capabilities": {},
                "clientInfo": {"name": "c", "version": "1"},
            }
            await client.send({"jsonrpc": "2.0", "id": "h", "method": "initialize", "params": hello})
            await client.receive()
            await client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        for number, uri in enumerate(["a://x", "a://b/x"]):
            meta = {
                "io.modelcontextprotocol/protocolVersion": revision.name,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            params = {"uri": uri} | ({"_meta": meta} if revision.era is Era.STATELESS else {})
            await client.send({"jsonrpc": "2.0", "id": number, "method": "resources/read", "params": params})
            answer = await client.receive()
            assert answer["error"]["code"] == (-32602 if revision.era is Era.STATELESS else -32002)
            assert answer["error"]["data"] == {"uri": uri}


def _missing(c: str) -> str:
    raise ResourceNotFound(f"a://b/{c}")


async def test_variables_of_templates_are_completed_with_the_others_known():
    server = Server("s")

    async def cities(typed: str, others: dict[str, str]) -> list[str]:
        return [f"{others.get('country', '?')}-{number}" for number in range(150)]

    @server.resource("geo://{country}/{city}")
    def city(country: Annotated[str, Complete(["de", "dk", "fr"])], city: Annotated[str, Complete(cities)]) -> str:
        return city

    async def complete(name: str, value: str, **context: str) -> dict[str, Any]:
        params = {
            "ref": {"type": "ref/resource", "uri": "geo://{country}/{city}"},
            "argument": {"name": name, "value": value},
            "context": {"arguments": context},
        }
        completion: dict[str, Any] = (await result(server, "completion/complete", params))["completion"]
        return completion

    assert await complete("country", "d") == {"values": ["de", "dk"], "total": 2, "hasMore": False}
    many = await complete("city", "", country="fr")
    assert (len(many["values"]), many["values"][0], many["total"], many["hasMore"]) == (100, "fr-0", 150, True)
    named = {"ref": {"type": "ref/resource", "uri": "geo://de/x"}, "argument": {"name": "country", "value": "f"}}
    assert (await result(server, "completion/complete", named))["completion"]["values"] == ["fr"], "a URI names it too"
    unknown = {"ref": {"type": "ref/resource", "uri": "geo://x"}, "argument": {"name": "a", "value": ""}}
    assert (await error(server, "completion/complete", unknown))["code"] == -32602


async def test_freshness_is_the_handlers_word_else_the_registrations_else_the_servers():
    server = Server("s", ttl_ms=1, cache_scope="public")
    server.add_resource("a://1", lambda: "x", name="a")
    server.add_resource("a://2", lambda: "x", name="b", ttl_ms=2, cache_scope="private")
    said = ReadResourceResult(contents=(ResourceContents(uri="a://3", text="x"),), ttl_ms=3)
    server.add_resource("a://3", lambda: said, name="c", ttl_ms=2, cache_scope="private")

    async def freshness(uri: str) -> tuple[int, str]:
        found = await result(server, "resources/read", {"uri": uri})
        return found["ttlMs"], found["cacheScope"]

    assert [await freshness(f"a://{number}") for number in (1, 2, 3)] == [(1, "public"), (2, "private"), (3, "private")]


async def test_who_subscribed_hears_of_a_resource_that_was_updated_and_nobody_else():
    server = Server("s")
    server.add_resource("a://b", lambda: "x", name="r")
    async with connected(server) as client, connected(server) as other:
        wanted = {"notifications": {"resourceSubscriptions": ["a://b"]}}
        await client.request("subscriptions/listen", wanted)
        assert (await client.receive())["params"]["notifications"] == wanted["notifications"]
        await other.request("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["a://other"]}})
        await other.receive()

        await server.resource_updated("a://b")
        await server.resource_updated("a://b")

        told = await client.receive()
        assert (told["method"], told["params"]["uri"]) == ("notifications/resources/updated", "a://b")
        await client.ask("server/discover")
        await other.ask("server/discover")
        assert client.notices == other.notices == []


async def test_a_resource_that_fails_says_nothing_of_why(caplog):
    server = Server("s")

    @server.resource("a://b")
    def broken() -> str:
        raise RuntimeError("postgres://u:pw@h/db")

    answer = await ask(server, "resources/read", {"uri": "a://b"})
    assert answer["error"]["code"] == -32603
    assert "postgres" not in str(answer)
    assert "postgres" in caplog.text
