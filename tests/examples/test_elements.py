"""What the examples of elements answer, beyond what was recorded: the outputs that their documentation promises."""

import json
import runpy

import pytest

from mcprelay import Refused, RemoteError, ToolError
from mcprelay.revisions import ALL
from tests.examples.program import EXAMPLES, HANDSHAKE, NEWEST, connected, started

OLDEST = list(ALL)[-1]


@pytest.fixture(params=[NEWEST, HANDSHAKE])
def revision(request):
    return request.param


async def said(client, tool, **arguments):
    """What a tool gave; the handshake era puts what is no object into one."""
    value = (await client.call_tool(tool, arguments)).value
    return value["result"] if isinstance(value, dict) and value.keys() == {"result"} else value


async def read(client, uri):
    return (await client.read_resource(uri)).contents[0].text


async def test_the_calculator_remembers_its_settings_from_call_to_call(revision):
    async with started("discovery_calculator/server.py", revision=revision) as client:
        assert (client.server.info.name, client.server.info.version) == ("Stdio Calculator", "1.1.0")
        assert await said(client, "calculate", a=10, b=3, operation="divide") == 3.33
        updated = await said(client, "update_setting", setting="precision", value=4)
        assert updated == {"success": True, "message": "Precision updated to 4."}
        assert await said(client, "calculate", a=10, b=3, operation="divide") == 3.3333
        updated = await said(client, "update_setting", setting="allow_negative", value=False)
        assert updated == {"success": True, "message": "Allow negative results set to false."}
        assert (
            await said(client, "calculate", a=1, b=3, operation="subtract") == "Error: Negative results are disabled."
        )
        assert json.loads(await read(client, "config://calculator/settings")) == {
            "precision": 4,
            "allow_negative": False,
        }
        assert [resource.name for resource in await client.list_resources()] == ["calculator_config"]


async def test_the_calculator_says_what_it_cannot_do():
    async with started("discovery_calculator/server.py") as client:
        assert await said(client, "calculate", a=1, b=0, operation="divide") == "Error: Division by zero."
        assert await said(client, "calculate", a=1, b=2, operation="x") == (
            "Error: Unknown operation 'x'. Supported: add, subtract, multiply, divide."
        )
        refused = {
            ("x", 1): "Unknown setting 'x'.",
            ("precision", 11): "Invalid precision value. Must be integer between 0 and 10.",
            ("precision", True): "Invalid precision value. Must be integer between 0 and 10.",
            ("allow_negative", "no"): "Invalid allow_negative value. Must be boolean (true/false).",
        }
        for (setting, value), error in refused.items():
            answer = await said(client, "update_setting", setting=setting, value=value)
            assert answer == {"success": False, "error": error}


async def test_user_profiles_are_found_completed_and_linked(revision):
    async with connected("discovery_userprofile/server.py", revision=revision) as client:
        assert json.loads(await read(client, "user://list/ids")) == [101, 102, 103]
        assert json.loads(await read(client, "system://status"))["status"] == "healthy"
        with pytest.raises(RemoteError, match="User profile not found for ID: 999") as refused:
            await client.read_resource("user://999/profile")
        assert refused.value.code == -32602
        assert (await said(client, "send_welcome", userId="101"))["message_sent"] == "Welcome, Alice!"
        assert (await said(client, "test_tool_without_params"))["success"] is True
        assert await said(client, "calculator", a=6, b=3, operation="divide") == 2
        assert await said(client, "calculator", a=6, b=3) == 9
        text, link = (await client.call_tool("lookup_user", {"userId": "102"})).content
        assert (text.text, link.uri) == ("Found Bob.", "user://102/profile")
        (template,) = await client.list_resource_templates()
        assert (await client.complete(template, "userId", "10")).values == ("101", "102", "103")
        (prompt,) = await client.list_prompts()
        assert (await client.complete(prompt, "userId", "2")).values == ("102",)
        told = await client.get_prompt("generate_bio_prompt", {"userId": "103"})
        assert told.messages[0].content.text.startswith("Write a short, professional biography for Charlie")


async def test_what_is_registered_by_hand_wins_over_what_is_discovered(revision):
    async with connected("combined_registration/server.py", path="/mcp_combined", revision=revision) as client:
        names = {tool.name for tool in await client.list_tools()}
        assert names == {"manualGreeter", "instance_greeter", "discovered_status_check"}
        assert await said(client, "discovered_status_check") == "System status: OK (discovered)"
        assert "HIGH" in await read(client, "config://priority")


@pytest.mark.parametrize(
    ("example", "path"),
    [
        ("combined_registration/server.py", "/mcp_combined/sse"),
        ("complex_tool_schema.py", "/mcp_scheduler/sse"),
        ("discovery_userprofile/server.py", "/sse"),
        ("schema_showcase.py", "/sse"),
        ("stateless_lifecycle.py", "/sse"),
    ],
)
async def test_an_example_over_http_serves_clients_of_the_older_pair_too(example, path):
    async with connected(example, path=path, revision=OLDEST) as client:
        assert await client.list_tools()
        assert client.server.revision == OLDEST


async def test_registration_by_hand_needs_nothing_of_the_class(revision):
    async with started("explicit_registration.py", revision=revision) as client:
        assert [tool.name for tool in await client.list_tools()] == ["echo_text"]
        assert await read(client, "app://version") == "1.0-manual"


@pytest.mark.parametrize(
    ("mode", "answer"),
    [
        ("debug", {"mode": "debug", "processed_input": "ABC"}),
        ("production", {"mode": "production", "processed_input_length": 3}),
        ("", {"mode": "default", "original_input": "abc"}),
    ],
)
async def test_the_environment_that_the_client_gives_decides(mode, answer):
    async with started("env_variables.py", env={"APP_MODE": mode}) as client:
        told = await said(client, "process_data_by_mode", input="abc")
        assert told.pop("message")
        assert told == answer


async def test_tasks_are_kept_by_what_is_bound_to_the_interface(revision):
    async with started("custom_dependencies.py", revision=revision) as client:
        task = await said(client, "add_task", userId="alice", description="Read")
        assert (task["id"], task["userId"], task["completed"]) == (4, "alice", False)
        assert [each["id"] for each in await said(client, "list_user_tasks", userId="alice")] == [4]
        assert (await said(client, "complete_task", taskId=4))["success"] is True
        assert (await said(client, "complete_task", taskId=5))["success"] is False
        assert await said(client, "list_user_tasks", userId="alice") == []
        stats = json.loads(await read(client, "stats://system/overview"))
        assert (stats["total_tasks"], stats["completed_tasks"], stats["pending_tasks"]) == (4, 1, 3)


async def test_an_event_takes_its_defaults():
    async with connected("complex_tool_schema.py", path="/mcp_scheduler") as client:
        meeting = {"title": "Sync", "date": "2030-01-02", "type": "meeting", "attendees": ["a@b.c"]}
        told = await said(client, "schedule_event", **meeting)
        details = told["event_details"]
        assert (details["priority"], details["time"], details["invites_will_be_sent"]) == ("Normal", "All day", True)
        with pytest.raises(ToolError, match="meeting"):
            await client.call_tool("schedule_event", {**meeting, "type": "party"})


async def test_what_the_showcase_says_of_arguments_is_enforced():
    refused = [
        ("format_text", {"text": "abc"}),
        ("format_text", {"text": "under_score"}),
        ("calculate_range", {"first": 1001, "second": 1, "operation": "add"}),
        ("calculate_range", {"first": 1, "second": 1, "operation": "add", "precision": 3}),
        ("validate_profile", {"profile": {"name": "Jo", "email": "jo@example.com", "age": 12}}),
        ("validate_profile", {"profile": {"name": "Jo", "email": "nobody", "age": 40}}),
        ("manage_list", {"items": ["a", "a"]}),
        ("generate_config", {"appName": "app", "baseUrl": "https://example.com", "port": 80}),
        ("schedule_event", {"title": "Sync", "startTime": "2030-01-02T10:00:00Z", "durationHours": 0.7}),
    ]
    async with connected("schema_showcase.py") as client:
        for tool, arguments in refused:
            assert isinstance(await client.try_call_tool(tool, arguments), Refused), (tool, arguments)
        told = await said(client, "calculate_range", first=2, second=10, operation="power")
        assert told == {"result": 1024, "operation": "2 power 10"}
        with pytest.raises(ToolError, match="Division by zero"):
            await client.call_tool("calculate_range", {"first": 2, "second": 0, "operation": "divide"})
        config = await said(client, "generate_config", appName="my-app", baseUrl="https://example.com")
        assert config["config"]["app"]["port"] == 8080
        kept = {"name": "Jo", "email": "jo@example.com", "age": 40, "shoe_size": 42}
        assert (await said(client, "validate_profile", profile=kept))["profile"] == kept


async def test_a_cached_example_raises_what_its_functions_raise():
    async with started("cached_discovery/server.py") as client:
        assert await said(client, "divide_numbers", a=7, b=2) == 3.5
        with pytest.raises(ToolError, match="Division by zero is not allowed"):
            await client.call_tool("divide_numbers", {"a": 7, "b": 0})
        with pytest.raises(ToolError, match="is no number"):
            await client.call_tool("power", {"base": 10, "exponent": 400})


def test_the_second_start_with_a_cache_imports_nothing():
    example = EXAMPLES / "cached_discovery"
    runpy.run_path(str(example / "server.py"))
    server = runpy.run_path(str(example / "server.py"))["server"]
    found = server.discover(example / "handlers")  # a second call gives what the first one found
    assert (found.files, found.skipped, len(found.tools)) == (1, 1, 4)


@pytest.mark.parametrize("revision", [NEWEST, HANDSHAKE])
async def test_a_server_may_answer_for_tools_that_are_no_functions(revision):
    async with started("custom_method_handlers.py", revision=revision) as client:
        assert [tool.name for tool in await client.list_tools()] == ["say_hello", "sum"]
        assert (await client.call_tool("say_hello", {"name": "Ada"})).text == "Hello, Ada!"
        assert (await client.call_tool("sum", {"a": 1, "b": 2.5})).text == "3.5"
        for name, arguments in [("sum", {"a": 1}), ("nobody", {})]:
            with pytest.raises(RemoteError) as refused:
                await client.call_tool(name, arguments)
            assert refused.value.code == -32602


async def test_the_weather_app_says_that_it_has_pages_for_hosts_that_show_them():
    async with started("mcp_apps/server.py") as client:
        page = (await client.read_resource("ui://weather-app")).contents[0]
        assert page.mime_type == "text/html;profile=mcp-app"
        assert "io.modelcontextprotocol/ui" in client.server.capabilities.extensions
        assert await said(client, "get_weather", city="Nowhere") == "Weather in Nowhere: 20°C, Clear, Humidity: 50%"
