"""A provider of models that says what a script says, over the HTTP APIs of Anthropic, OpenAI (both) and Gemini.

An agent can be tried, and tested, without a key and without a network. What the agent sends is held to the rules that
the real APIs enforce with status 400: every call is answered once, names are legal, strict schemas are strict.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from aiohttp import web

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}


@dataclass(frozen=True)
class Call:
    """A call that the scripted model makes. `arguments` may be a text that is no JSON, where an API allows for it."""

    name: str
    arguments: Any = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What the model was told of one call."""

    name: str
    text: str
    failed: bool | None
    """None where the API has no flag for it."""
    media: tuple[str, ...] = ()


Turn = str | Sequence[Call]
"""What the model says: a text that ends the run, or calls, all at once."""


class Refused(Exception):
    """The request breaks a rule of the API."""


class Provider:
    """Serve a script on a free port of this machine: `async with Provider([...]) as provider: provider.url`.

    Attributes:
        requests: What was asked, in order.
        tools: Names of the tools of the last request, with their schemas.
        answers: What the model was told of the calls of its last turn, in the order of the calls.
        told: All of them, a list for each turn.
        refused: Why a request got status 400.
    """

    def __init__(self, script: Sequence[Turn]) -> None:
        self._script = list(script)
        self._ids = count(1)
        self._pending: dict[str, str] = {}
        self.requests: list[dict[str, Any]] = []
        self.tools: dict[str, Any] = {}
        self.told: list[list[Answer]] = []
        self.refused: list[str] = []
        self.url = ""

    @property
    def answers(self) -> list[Answer]:
        return self.told[-1]

    async def __aenter__(self):
        app = web.Application(client_max_size=1 << 30)
        for path, speak in (
            ("/v1/messages", self._anthropic),
            ("/v1/responses", self._responses),
            ("/v1/chat/completions", self._chat),
            (r"/{version:v1|v1beta}/models/{call:.+:generateContent}", self._gemini),
        ):
            app.router.add_post(path, self._handler(speak))
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def _handler(self, speak):
        async def handle(request: web.Request) -> web.Response:
            body = await request.json()
            self.requests.append(body)
            try:
                return web.json_response(speak(body))
            except Refused as refused:
                self.refused.append(str(refused))
                error = {"type": "invalid_request_error", "message": str(refused), "code": 400, "status": "INVALID"}
                return web.json_response({"type": "error", "error": error}, status=400)

        return handle

    # --- the script

    def _turn(self, answers: dict[str, Answer], tools: dict[str, Any]) -> tuple[str, list[tuple[str, Call]]]:
        """The next turn, once all calls of the last one are answered."""
        must(set(answers) == set(self._pending), f"calls {sorted(self._pending)}, but answers for {sorted(answers)}")
        for name in tools:
            must(NAME.fullmatch(name), f"{name!r} is no name of a tool")
        if self._pending:
            self.told.append([answers[call] for call in self._pending])
        self.tools = tools
        turn = self._script.pop(0) if self._script else "The script is at its end."
        if isinstance(turn, str):
            self._pending = {}
            return turn, []
        calls = [(f"call_{next(self._ids)}", call) for call in turn]
        self._pending = {made: call.name for made, call in calls}
        return "", calls

    # --- Anthropic's Messages

    def _anthropic(self, body: dict[str, Any]) -> dict[str, Any]:
        must(isinstance(body.get("max_tokens"), int), "max_tokens: field required")
        answers = {}
        for block in _blocks(body["messages"][-1]["content"]):
            if block["type"] == "tool_result":
                name = self._pending.get(block["tool_use_id"], "")
                parts = [_anthropic_part(part) for part in _blocks(block.get("content", ""))]
                answers[block["tool_use_id"]] = _answer(name, parts, failed=block.get("is_error", False))
        for tool in body.get("tools", ()):
            must(tool["input_schema"].get("type") == "object", "tools.input_schema.type: must be object")
        text, calls = self._turn(answers, {tool["name"]: tool["input_schema"] for tool in body.get("tools", ())})
        content: list[Any] = [{"type": "text", "text": text}] if text else []
        content += [{"type": "tool_use", "id": made, "name": c.name, "input": c.arguments} for made, c in calls]
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }

    # --- OpenAI's Responses

    def _responses(self, body: dict[str, Any]) -> dict[str, Any]:
        items = body["input"] if isinstance(body["input"], list) else []
        answers = {}
        for item in items:
            if item.get("type") == "function_call_output" and item["call_id"] in self._pending:
                parts = [_responses_part(part) for part in _blocks(item["output"])]
                answers[item["call_id"]] = _answer(self._pending[item["call_id"]], parts, failed=None)
        called = {item["call_id"] for item in items if item.get("type") == "function_call"}
        must(called >= set(answers), "No tool call found for function call output")
        for tool in body.get("tools", ()):
            _strictly(tool["parameters"], strict=tool.get("strict"))
        text, calls = self._turn(answers, {tool["name"]: tool["parameters"] for tool in body.get("tools", ())})
        output: list[Any] = [
            {"type": "function_call", "id": f"fc_{made}", "call_id": made, "name": call.name, "status": "completed"}
            | {"arguments": _json(call.arguments)}
            for made, call in calls
        ]
        if text:
            said = {"type": "output_text", "text": text, "annotations": []}
            output.append(
                {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [said]}
            )
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        details = {"input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}}
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": body["model"],
            "status": "completed",
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {**usage, **details, "output_tokens_details": {"reasoning_tokens": 0}},
        }

    # --- OpenAI's Chat Completions

    def _chat(self, body: dict[str, Any]) -> dict[str, Any]:
        answers: dict[str, Answer] = {}
        follow = []
        for message in body["messages"]:
            if message["role"] == "tool" and message["tool_call_id"] in self._pending:
                name = self._pending[message["tool_call_id"]]
                parts = [_chat_part(part) for part in _blocks(message["content"])]
                must(all(kind == "text" for kind, _ in parts), "messages.tool.content: only text parts are supported")
                answers[message["tool_call_id"]] = _answer(name, parts, failed=None)
                follow = []
            elif message["role"] == "user":
                follow = [_chat_part(part)[0] for part in _blocks(message["content"])]
        media = tuple(kind for kind in follow if kind != "text")
        if media and answers:  # pictures that follow the answers, which cannot hold them
            last = list(answers)[-1]
            answers[last] = Answer(answers[last].name, answers[last].text, None, media)
        functions = [tool["function"] for tool in body.get("tools", ())]
        for function in functions:
            _strictly(function["parameters"], strict=function.get("strict"))
        text, calls = self._turn(answers, {one["name"]: one["parameters"] for one in functions})
        message = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = [
                {"id": made, "type": "function", "function": {"name": c.name, "arguments": _json(c.arguments)}}
                for made, c in calls
            ]
        reason = "tool_calls" if calls else "stop"
        return {
            "id": "chat_1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }

    # --- Gemini's generateContent

    def _gemini(self, body: dict[str, Any]) -> dict[str, Any]:
        answers: dict[str, Answer] = {}
        waiting = dict(self._pending)
        for part in body["contents"][-1]["parts"]:
            response = part.get("functionResponse")
            if response is None:
                continue
            same = (made for made, name in waiting.items() if name == response["name"])
            made = response.get("id") or next(same, "")
            waiting.pop(made, None)
            told, media = response["response"], response.get("parts", ())
            must(isinstance(told, dict), "functionResponse.response: must be an object")
            failed = "error" in told
            said = told.get("error", told.get("output", told))
            text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
            beside = [one for one in body["contents"][-1]["parts"] if "inlineData" in one]
            kinds = tuple(_gemini_type(one) for one in (*media, *beside))
            answers[made] = Answer(response["name"], text, failed, kinds)
        declared = [one for tool in body.get("tools", ()) for one in tool["functionDeclarations"]]
        schemas = {one["name"]: one.get("parametersJsonSchema") or one["parameters_json_schema"] for one in declared}
        text, calls = self._turn(answers, schemas)
        parts: list[Any] = [{"text": text}] if text else []
        parts += [{"functionCall": {"id": made, "name": c.name, "args": c.arguments}} for made, c in calls]
        return {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
            "modelVersion": "scripted",
        }


def must(true: object, rule: str) -> None:
    if not true:
        raise Refused(rule)


def _json(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _answer(name: str, parts: list[tuple[str, str]], *, failed: bool | None) -> Answer:
    text = "\n".join(said for kind, said in parts if kind == "text")
    return Answer(name, text, failed, tuple(kind for kind, _ in parts if kind != "text"))


def _anthropic_part(part: dict[str, Any]) -> tuple[str, str]:
    if part["type"] == "text":
        must(part["text"], "text content blocks must be non-empty")
        return "text", part["text"]
    source = part["source"]
    allowed = {"image": IMAGES, "document": {"application/pdf"}}.get(part["type"], set())
    must(source["type"] == "base64" and source["media_type"] in allowed, f"{part['type']}: {source.get('media_type')}")
    return source["media_type"], ""


def _gemini_type(part: dict[str, Any]) -> str:
    """Both spellings are the API's, and its SDK uses both."""
    inline = part.get("inlineData") or part["inline_data"]
    return inline.get("mimeType") or inline["mime_type"]


def _responses_part(part: dict[str, Any]) -> tuple[str, str]:
    if part["type"] in {"text", "input_text"}:
        return "text", part["text"]
    must(part["type"] in {"input_image", "input_file"}, f"output: {part['type']} is not supported")
    return _data_url(part.get("image_url") or part.get("file_data")), ""


def _chat_part(part: dict[str, Any]) -> tuple[str, str]:
    if part["type"] == "text":
        return "text", part["text"]
    must(part["type"] in {"image_url", "file"}, f"content: {part['type']} is not supported")
    return _data_url(part["image_url"]["url"] if part["type"] == "image_url" else part["file"]["file_data"]), ""


def _data_url(url: Any) -> str:
    found = re.match(r"data:([\w/.+-]+);base64,.", str(url))
    must(found, "expected a base64-encoded data URL")
    return found[1] if found else ""


def _strictly(schema: Any, *, strict: bool | None) -> None:
    """See that a schema that claims to be strict closes every object and requires every member."""
    if not strict or not isinstance(schema, dict):
        return
    if "properties" in schema:
        must(schema.get("additionalProperties") is False, "'additionalProperties' is required to be false")
        must(sorted(schema["properties"]) == sorted(schema.get("required", ())), "'required' has to have every key")
    for inner in [*schema.get("properties", {}).values(), schema.get("items"), *schema.get("anyOf", ())]:
        _strictly(inner, strict=True)


WORLD_CLOCK: list[Turn] = [
    [
        Call("time__get_current_time", {"timezone": "UTC"}),
        Call(
            "time__convert_time",
            {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
        ),
    ],
    [Call("time__get_current_time", {"timezone": "Atlantis/Nowhere"})],
    "Noon in UTC is 21:00 in Tokyo. Nobody knows what time it is in Atlantis.",
]
"""A conversation with `mcp-server-time`: two calls at once, then one that fails."""
