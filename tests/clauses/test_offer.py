"""server/*: what a server offers, how it lists it, and how it answers for it."""

import base64
import json
from typing import Any

import jsonschema
import pytest

from mcprelay import DefinitionError, ProtocolError, ResourceError, Schema, Server
from mcprelay.server.call import Principal
from tests.clauses.house import Workshop
from tests.clauses.http import HttpWire
from tests.server.rawclient import RawClient

LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
CACHEABLE: list[tuple[str, dict[str, Any]]] = [
    ("server/discover", {}),
    *((method, {}) for method in LISTS),
    ("resources/read", {"uri": "work://text"}),
]
COMPLETION = {"ref": {"type": "ref/prompt", "name": "review"}, "argument": {"name": "language", "value": "p"}}


# ---------------------------------------------------------------------------------------------------------------- lists


@pytest.mark.clause("tools.capability", "resources.capability", "prompts.capability", "completion.capability")
async def test_what_there_is_is_declared_and_what_there_is_not_is_absent():
    empty = HttpWire(Server("empty").asgi())
    declared = (await empty.result("server/discover"))["capabilities"]
    assert declared.keys() & {"tools", "resources", "prompts", "completions"} == set()
    for method in LISTS:
        assert (await empty.error(method))["code"] == -32601
        assert empty.status == 404


@pytest.mark.clause("tools.list", "resources.list", "prompts.list")
@pytest.mark.parametrize(("method", "field"), LISTS.items())
async def test_a_list_is_the_same_over_every_connection_and_after_every_call(
    server: Server, wire: Any, method: str, field: str
):
    first = await wire.result(method)
    assert first[field]
    await wire.result("tools/call", {"name": "echo", "arguments": {"text": "a"}})
    end = server.connect()
    assert (await RawClient(end).result(method))[field] == first[field]
    assert (await wire.result(method))[field] == first[field]
    await end.aclose()


@pytest.mark.clause("tools.list-not-connection", "resources.list-not-connection", "prompts.list-not-connection")
@pytest.mark.parametrize(("method", "field"), LISTS.items())
async def test_the_client_that_asks_changes_nothing_about_a_list(server: Server, method: str, field: str):
    app = server.asgi()
    lists = [await HttpWire(app, **capabilities).result(method) for capabilities in ({}, {"elicitation": {}})]
    assert lists[0][field] == lists[1][field]


@pytest.mark.clause("tools.order")
async def test_the_order_of_tools_is_the_order_of_registration_also_after_a_change(server: Server, wire: Any):
    names = [tool["name"] for tool in (await wire.result("tools/list"))["tools"]]
    assert names[:4] == ["echo", "weather", "refuse", "broken"]
    server.add_tool(lambda: "x", name="late")
    assert [tool["name"] for tool in (await wire.result("tools/list"))["tools"]] == [*names, "late"]
    server.remove_tool("late")
    assert [tool["name"] for tool in (await wire.result("tools/list"))["tools"]] == names


@pytest.mark.clause("tools.access-control", "resources.access-control", "resources.permissions-first")
async def test_what_a_principal_may_not_use_is_not_listed_and_not_answered():
    server = Server("guarded")

    @server.tool(requires=["admin"])
    def secret_tool() -> str:
        """For admins."""
        return "secret"

    @server.resource("work://secret", requires=["admin"])
    def secret() -> str:
        """For admins."""
        return "secret"

    ends = [server.connect(principal=Principal("p", frozenset(scopes))) for scopes in ({"admin"}, {"user"})]
    admin, user = (RawClient(end) for end in ends)
    assert [tool["name"] for tool in (await admin.result("tools/list"))["tools"]] == ["secret_tool"]
    assert (await user.result("tools/list"))["tools"] == []
    assert (await admin.result("tools/call", {"name": "secret_tool"}))["content"][0]["text"] == "secret"
    assert (await user.error("tools/call", {"name": "secret_tool"}))["code"] == -32602
    assert (await user.error("resources/read", {"uri": "work://secret"}))["code"] == -32602
    for end in ends:
        await end.aclose()
    await server.stop()


@pytest.mark.clause("caching.hints", "caching.not-negative")
@pytest.mark.parametrize(("method", "params"), CACHEABLE)
@pytest.mark.parametrize("options", [{}, {"ttl_ms": 5000, "cache_scope": "public"}])
async def test_what_may_be_kept_says_for_how_long_and_for_whom(
    method: str, params: dict[str, Any], options: dict[str, Any]
):
    result = await HttpWire(Workshop(**options).server.asgi()).result(method, params)
    assert result["ttlMs"] == options.get("ttl_ms", 0)
    assert result["cacheScope"] == options.get("cache_scope", "private")


@pytest.mark.clause("caching.hints")
async def test_a_question_carries_no_caching_hints(wire: Any):
    asked = await wire.result("resources/read", {"uri": "work://asking"})
    assert asked.keys() & {"ttlMs", "cacheScope"} == set()


@pytest.mark.clause("pagination.stable", "caching.same-scope")
@pytest.mark.parametrize(("method", "field"), LISTS.items())
async def test_pages_together_are_the_list_and_have_one_scope(method: str, field: str):
    whole = await HttpWire(Workshop(cache_scope="public").server.asgi()).result(method)
    http = HttpWire(Workshop(cache_scope="public", page_size=1).server.asgi())
    items: list[Any] = []
    scopes = set()
    cursor: dict[str, Any] = {}
    while True:
        page = await http.result(method, cursor)
        assert len(page[field]) == 1
        items += page[field]
        scopes.add(page["cacheScope"])
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
        assert (await http.result(method, cursor))[field] == (await http.result(method, cursor))[field]
    assert items == whole[field]
    assert scopes == {"public"}


@pytest.mark.clause("pagination.invalid", "pagination.invalid-code")
@pytest.mark.parametrize("cursor", ["", "0", "nonsense", "eyJwYWdlIjogM30=", "\u0000", "9" * 5000])
@pytest.mark.parametrize("method", LISTS)
async def test_a_cursor_that_the_server_did_not_make_is_refused(wire: Any, method: str, cursor: str):
    assert (await wire.error(method, {"cursor": cursor}))["code"] == -32602


# ---------------------------------------------------------------------------------------------------------------- tools


@pytest.mark.clause("tools.input-schema", "index.schema-valid", "index.schema-2020-12")
async def test_every_published_schema_is_valid_2020_12(wire: Any):
    for tool in (await wire.result("tools/list"))["tools"]:
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        assert tool["inputSchema"]["type"] == "object"
        if "outputSchema" in tool:
            jsonschema.Draft202012Validator.check_schema(tool["outputSchema"])


@pytest.mark.clause("tools.output-conforms", "tools.text-mirror")
async def test_structured_content_conforms_to_what_was_published_and_is_there_as_text(wire: Any):
    tools = {tool["name"]: tool for tool in (await wire.result("tools/list"))["tools"]}
    result = await wire.result("tools/call", {"name": "weather", "arguments": {"city": "Oslo"}})
    assert result["structuredContent"] == {"city": "Oslo", "degrees": 21.5}
    jsonschema.validate(result["structuredContent"], tools["weather"]["outputSchema"])
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


@pytest.mark.clause("tools.output-conforms")
@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"degrees": float("-inf")}])
async def test_what_the_output_schema_refuses_never_leaves(server: Server, wire: Any, value: Any):
    @server.tool(output_schema={"type": ["number", "object"]})
    def wrong() -> Any:
        """Return what JSON cannot say."""
        return value

    result = await wire.result("tools/call", {"name": "wrong"})
    assert result["isError"] is True
    assert "structuredContent" not in result


@pytest.mark.clause("tools.inputs-validated")
@pytest.mark.parametrize(
    "arguments", [{}, {"text": 5}, {"text": None}, {"text": "a", "times": "many"}, {"text": "a", "tiems": 2}]
)
async def test_arguments_that_do_not_fit_are_an_error_for_the_model_and_the_tool_does_not_run(
    wire: Any, workshop: Workshop, arguments: dict[str, Any]
):
    result = await wire.result("tools/call", {"name": "echo", "arguments": arguments})
    assert result["isError"] is True
    assert workshop.runs == 0


@pytest.mark.clause("tools.name-case")
async def test_names_are_case_sensitive(wire: Any):
    assert (await wire.error("tools/call", {"name": "Echo"}))["code"] == -32602


@pytest.mark.clause("tools.name-length", "tools.name-characters", "tools.name-no-special")
@pytest.mark.parametrize("name", ["", "a b", "a,b", "a/b", "ä", "a" * 129, "a\n"])
def test_a_name_that_no_tool_should_have_is_refused_at_registration(name: str):
    with pytest.raises(DefinitionError, match="name"):
        Server("s").add_tool(lambda: "x", name=name)


@pytest.mark.clause("tools.name-length", "tools.name-characters")
@pytest.mark.parametrize("name", ["getUser", "DATA_EXPORT_v2", "admin.tools.list", "a", "a" * 128])
async def test_a_proper_name_is_served(name: str):
    server = Server("s")
    server.add_tool(lambda: "x", name=name)
    assert (await HttpWire(server.asgi()).result("tools/call", {"name": name}))["content"][0]["text"] == "x"


@pytest.mark.clause("tools.name-unique")
def test_the_same_name_twice_is_refused_unless_it_shall_replace():
    server = Server("s")
    server.add_tool(lambda: "x", name="twin")
    with pytest.raises(DefinitionError, match="twin"):
        server.add_tool(lambda: "y", name="twin")
    server.add_tool(lambda: "z", name="twin", replace=True)


@pytest.mark.clause(
    "tools.mirror-not-empty",
    "tools.mirror-token",
    "tools.mirror-no-control",
    "tools.mirror-primitive",
    "tools.mirror-reachable",
)
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "x-mcp-header": ""},
        {"type": "string", "x-mcp-header": "a b"},
        {"type": "string", "x-mcp-header": "a:b"},
        {"type": "string", "x-mcp-header": "ü"},
        {"type": "string", "x-mcp-header": "a\r\nb"},
        {"type": "number", "x-mcp-header": "A"},
        {"type": "object", "x-mcp-header": "A"},
        {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}},
        {"anyOf": [{"type": "string", "x-mcp-header": "A"}]},
        {"x-mcp-header": "A"},
    ],
)
def test_an_impossible_mirror_is_refused_at_registration(schema: dict[str, Any]):
    server = Server("s")
    definition = {"type": "object", "properties": {"p": schema}}
    with pytest.raises(DefinitionError):
        server.add_tool(lambda **arguments: "x", name="t", schema=Schema(definition=definition))


@pytest.mark.clause("tools.mirror-unique")
def test_two_mirrors_of_one_name_are_refused_whatever_their_case():
    properties = {name: {"type": "string", "x-mcp-header": header} for name, header in (("p", "A"), ("q", "a"))}
    schema = Schema(definition={"type": "object", "properties": properties})
    server = Server("s")
    with pytest.raises(DefinitionError):
        server.add_tool(lambda **arguments: "x", name="t", schema=schema)


# ------------------------------------------------------------------------------------------------------------ resources


@pytest.mark.clause("resources.not-found", "resources.never-empty", "resources.uris-validated")
@pytest.mark.parametrize("uri", ["work://nothing", "other://text", "work://files/", "WORK://TEXT", "work://text/"])
async def test_a_resource_that_does_not_exist_is_an_error_that_names_it(wire: Any, uri: str):
    error = await wire.error("resources/read", {"uri": uri})
    assert (error["code"], error["data"]["uri"]) == (-32602, uri)


@pytest.mark.clause("resources.uris-validated")
@pytest.mark.parametrize("uri", ["text", "", "work://files/%zz", "work://files/a b", "work://files/\x00", 5, None])
async def test_what_is_no_uri_is_refused(http: HttpWire, uri: Any):
    message = http.message("resources/read", {"uri": uri})
    assert (await http.answer(message))["error"]["code"] == -32602


@pytest.mark.clause("resources.internal-error")
async def test_an_error_inside_is_internal_and_gives_nothing_away(wire: Any):
    for method, params in (("resources/read", {"uri": "work://broken"}), ("prompts/get", {"name": "broken_prompt"})):
        error = await wire.error(method, params)
        assert error["code"] == -32603
        assert "secret" not in json.dumps(error)


@pytest.mark.clause("resources.binary-encoded")
async def test_bytes_are_base64(wire: Any):
    [contents] = (await wire.result("resources/read", {"uri": "work://bytes"}))["contents"]
    assert base64.b64decode(contents["blob"], validate=True) == b"\x00\xff"
    assert "text" not in contents


@pytest.mark.clause("resources.no-traversal")
@pytest.mark.parametrize("name", ["..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "a/../b", "%2e%2e%2f", "..%5c..", "a%00b"])
async def test_a_template_never_hands_a_way_out_of_its_folder_to_its_handler(wire: Any, name: str):
    assert (await wire.error("resources/read", {"uri": f"work://files/{name}"}))["code"] == -32602


@pytest.mark.clause("resources.custom-scheme")
@pytest.mark.parametrize("uri", ["no scheme", "1x://a", "work://a b", "work:// ", "://a", "work://[x"])
def test_a_uri_that_is_none_is_refused_at_registration(uri: str):
    with pytest.raises(DefinitionError):
        Server("s").add_resource(uri, lambda: "x")


async def test_a_resource_error_is_told_as_it_was_said(server: Server, wire: Any):
    @server.resource("work://closed")
    def closed() -> str:
        """Be closed."""
        raise ResourceError("closed on Sundays")

    assert (await wire.error("resources/read", {"uri": "work://closed"}))["message"] == "closed on Sundays"


async def test_a_protocol_error_passes_as_it_stands(server: Server, wire: Any):
    @server.tool
    def odd() -> str:
        """Fail in its own way."""
        raise ProtocolError(1234, "odd", {"why": [1]})

    error = await wire.error("tools/call", {"name": "odd"})
    assert error == {"code": 1234, "message": "odd", "data": {"why": [1]}}


# -------------------------------------------------------------------------------------------------- prompts, completion


@pytest.mark.clause("prompts.image", "prompts.audio", "prompts.embedded")
async def test_pictures_sounds_and_resources_in_prompts_have_data_and_media_types(wire: Any):
    contents = [message["content"] for message in (await wire.result("prompts/get", {"name": "gallery"}))["messages"]]
    picture, sound, resource = contents
    assert (picture["mimeType"], base64.b64decode(picture["data"], validate=True)) == ("image/png", b"\x89PNG")
    assert (sound["mimeType"], base64.b64decode(sound["data"], validate=True)) == ("audio/wav", b"RIFF")
    assert resource["resource"] == {"uri": "work://text", "mimeType": "text/plain", "text": "some text"}


@pytest.mark.clause("prompts.errors", "prompts.arguments-validated", "prompts.inputs-outputs")
@pytest.mark.parametrize(
    "params",
    [
        {"name": "nothing"},
        {"name": "review"},
        {"name": "review", "arguments": {}},
        {"name": "review", "arguments": {"language": "python", "other": "x"}},
    ],
)
async def test_an_unknown_prompt_and_wrong_arguments_are_invalid_params(wire: Any, params: dict[str, Any]):
    assert (await wire.error("prompts/get", params))["code"] == -32602


@pytest.mark.clause("prompts.arguments-validated")
@pytest.mark.parametrize("arguments", [5, [], {"language": 5}, {"language": None}])
async def test_arguments_of_a_prompt_are_texts(http: HttpWire, arguments: Any):
    message = http.message("prompts/get", {"name": "review", "arguments": arguments})
    assert (await http.answer(message))["error"]["code"] == -32602


@pytest.mark.clause("completion.validated", "completion.inputs", "completion.errors")
@pytest.mark.parametrize(
    "params",
    [
        {"ref": {"type": "ref/prompt", "name": "nothing"}, "argument": {"name": "language", "value": "p"}},
        {"ref": {"type": "ref/resource", "uri": "work://nothing/{x}"}, "argument": {"name": "x", "value": ""}},
        {"ref": {"type": "ref/tool", "name": "echo"}, "argument": {"name": "text", "value": ""}},
        {"ref": {"type": "ref/prompt"}, "argument": {"name": "language", "value": "p"}},
        {"ref": COMPLETION["ref"]},
        {"ref": COMPLETION["ref"], "argument": {"name": "language", "value": 5}},
        {"argument": COMPLETION["argument"]},
        {**COMPLETION, "context": {"arguments": {"focus": 5}}},
    ],
)
async def test_a_completion_of_what_is_not_there_is_invalid(http: HttpWire, params: dict[str, Any]):
    assert (await http.answer(http.message("completion/complete", params)))["error"]["code"] == -32602


async def test_a_completion_offers_what_begins_with_what_was_typed(wire: Any):
    completion = (await wire.result("completion/complete", COMPLETION))["completion"]
    assert (completion["values"], completion["total"]) == (["python", "perl", "php"], 3)
