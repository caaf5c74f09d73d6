"""The examples that ask and tell their client while they work."""

import pytest

from mcprelay import Client, Root, SamplingResult, Text, ToolError
from tests.examples.program import HANDSHAKE, NEWEST, connected, free_port, listening, started


@pytest.fixture(params=[NEWEST, HANDSHAKE])
def revision(request):
    return request.param


def model(asked):
    assert "Coordinating responders" in asked.messages[0].content.text
    return SamplingResult(role="assistant", content=Text("Stay calm."), model="scripted")


async def test_an_incident_is_told_step_by_step_and_planned_by_the_clients_model(revision):
    steps, messages = [], []
    async with started("client_communication.py", revision=revision, on_sample=model) as client:
        result = await client.call_tool(
            "coordinate_incident_response",
            {"incidentTitle": "Disk full"},
            on_progress=steps.append,
            on_log=messages.append,
            log_level="info",
        )
    assert result.value == {
        "incident": "Disk full",
        "recommended_actions": "Stay calm.",
        "model": "scripted",
    }
    assert [step.message for step in steps][:3] == [
        "Collecting telemetry", "Assessing scope", "Coordinating responders",
    ]  # fmt: skip
    assert [round(step.progress, 2) for step in steps][:3] == [0.33, 0.67, 1]
    assert messages[0].data == "Incident triage started: Disk full"
    assert messages[-1].data == "Incident triage completed: Disk full"


async def test_without_a_model_there_is_no_plan(revision):
    async with started("client_communication.py", revision=revision) as client:
        with pytest.raises(ToolError, match="lends no model"):
            await client.call_tool("coordinate_incident_response", {"incidentTitle": "Disk full"})


async def test_the_folders_of_the_client_are_listed(revision):
    roots = [Root("file:///work", "Work"), Root("file:///home")]
    async with started("client_communication.py", revision=revision, on_roots=roots) as client:
        told = (await client.call_tool("inspect_workspace_roots")).value
    assert (told["supported"], told["count"]) == (True, 2)
    assert told["roots"][0] == {"uri": "file:///work", "name": "Work"}
    async with started("client_communication.py", revision=revision) as client:
        assert (await client.call_tool("inspect_workspace_roots")).value["supported"] is False


async def test_a_data_set_is_checked_with_progress_and_messages(revision):
    steps, messages = [], []
    async with started("client_communication.py", revision=revision) as client:
        result = await client.call_tool(
            "run_dataset_quality_checks",
            {"dataset": "sales"},
            on_progress=steps.append,
            on_log=messages.append,
            log_level="info",
        )
    assert (result.value["dataset"], result.value["status"]) == ("sales", "passed")
    assert len(steps) == 3
    assert [message.data for message in messages] == [
        "Running quality checks on sales", "Dataset sales passed automated checks.",
    ]  # fmt: skip


LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


async def test_the_client_gets_the_levels_that_it_asked_for(revision):
    messages = []
    async with started("client_logging.py", revision=revision, on_log=messages.append, log_level="debug") as client:
        for level in LEVELS:
            said = await client.call_tool("log_message", {"message": f"about {level}", "level": level})
            assert said.text == f"Logged message with level: {level}"
        with pytest.raises(ToolError, match="level"):
            await client.call_tool("log_message", {"message": "x", "level": "loud"})
    assert [(message.level, message.data, message.logger) for message in messages] == [
        (level, f"about {level}", "demo") for level in LEVELS
    ]


async def test_what_is_less_severe_than_asked_for_is_not_sent(revision):
    messages = []
    async with started("client_logging.py", revision=revision, on_log=messages.append, log_level="error") as client:
        for level in LEVELS:
            await client.call_tool("log_message", {"message": level, "level": level})
    assert [message.level for message in messages] == ["error", "critical", "alert", "emergency"]


ANSWERS = {
    "accept": {
        "book_restaurant": "confirmed",
        "confirm_action": "confirmed",
        "collect_feedback": "received",
    },
    "decline": {"book_restaurant": "declined", "confirm_action": "declined", "collect_feedback": "skipped"},
    "cancel": {"book_restaurant": "cancelled", "confirm_action": "cancelled", "collect_feedback": "skipped"},
}
FORMS = {
    "reservation": {"party_size": 4, "date": "2030-05-01", "dietary": "vegan"},
    "sure": {"confirm": True},
    "feedback": {"rating": "5", "comments": "Fine."},
}
ARGUMENTS = {
    "book_restaurant": {"restaurant": "Chez Ada"},
    "confirm_action": {"actionDescription": "delete everything"},
    "collect_feedback": {"topic": "the meal"},
}


@pytest.mark.parametrize("action", ANSWERS)
async def test_every_answer_to_a_question_has_its_consequence(action, revision):
    def person(question):
        filled = next(form for word, form in FORMS.items() if word in question.message)
        return question.accept(filled) if action == "accept" else getattr(question, action)()

    async with started("elicitation.py", revision=revision, on_elicit=person) as client:
        for tool, status in ANSWERS[action].items():
            told = (await client.call_tool(tool, ARGUMENTS[tool])).value
            assert told["status"] == status, tool
            if tool == "book_restaurant" and action == "accept":
                assert told["message"] == "Reservation confirmed at Chez Ada for 4 guests on 2030-05-01."
                assert told["booking"]["dietary"] == "vegan"


async def test_a_box_that_is_not_ticked_confirms_nothing(revision):
    async with started(
        "elicitation.py", revision=revision, on_elicit=lambda question: question.accept(confirm=False)
    ) as client:
        told = (await client.call_tool("confirm_action", ARGUMENTS["confirm_action"])).value
    assert told["status"] == "not_confirmed"


async def test_a_client_that_cannot_be_asked_is_told_so():
    async with started("elicitation.py", revision=HANDSHAKE) as client:
        for tool, arguments in ARGUMENTS.items():
            told = (await client.call_tool(tool, arguments)).value
            assert told == {"status": "error", "message": "Client does not support elicitation."}


async def test_one_server_answers_both_eras(revision):
    steps = []
    async with connected(
        "stateless_lifecycle.py", revision=revision, on_elicit=lambda question: question.accept(name="Ada")
    ) as client:
        assert (await client.call_tool("greet")).text == "Hello, Ada!"
        await client.list_tools()
        assert (await client.call_tool("get_weather", {"city": "Łódź"})).text == "Weather in Łódź: 18°C, Cloudy"
        told = await client.call_tool("reindex", {"documents": 2}, on_progress=steps.append)
    assert told.text == "2 documents indexed"
    assert [step.progress for step in steps] == [1, 2]


async def test_another_process_with_the_key_goes_on_with_a_question(monkeypatch):
    monkeypatch.setenv("STATE_KEY", "7" * 64)
    port = free_port()
    async with Client(f"http://127.0.0.1:{port}/mcp", revision=NEWEST) as client:
        async with listening("stateless_lifecycle.py", port=port):
            asked = await client.try_call_tool("greet")
        async with listening("stateless_lifecycle.py", port=port):
            answered = await asked.answer({"name": {"name": "Ada"}})
    assert answered.text == "Hello, Ada!"
