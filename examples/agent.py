"""An agent on the command line, with tools of servers that are not ours.

    python examples/agent.py --offline "What time is it in Tokyo?"
    python examples/agent.py --provider anthropic --model MODEL --ask git__git_log "What happened in this repository?"

The servers are those of mcprelay.toml beside this file. Every call is printed; calls of tools named by `--ask` wait for
your consent. Providers, each with its own SDK: anthropic, openai, openai-chat, google, pydantic-ai, langchain,
openai-agents. Keys come from the variables that the SDKs read. `--offline` needs neither key nor network: a scripted
provider answers, and mcp-server-time is as real as ever.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import sys
import threading
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from mcprelay.relay import Relay, ToolSet, allow, ask

HERE = Path(__file__).resolve().parent
OUT_OF_STEPS = "(stopped: no steps left)"
ONE_QUESTION, ONE_READER = asyncio.Lock(), threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Task:
    """What every loop below is given. `base_url` and `key` are None where the SDK knows them itself."""

    tools: ToolSet
    prompt: str
    model: str
    system: str = ""
    max_steps: int = 10
    max_tokens: int = 2048
    base_url: str | None = None
    key: str | None = None


# --------------------------------------------------------------------------- loops: the model, its calls, their results


async def anthropic(task: Task) -> str:
    from anthropic import AsyncAnthropic

    from mcprelay.adapters import anthropic as adapter

    messages = [{"role": "user", "content": task.prompt}]
    async with AsyncAnthropic(api_key=task.key, base_url=task.base_url) as client:
        for _ in range(task.max_steps):
            reply = await client.messages.create(
                model=task.model,
                max_tokens=task.max_tokens,
                messages=messages,
                tools=adapter.tools(task.tools),
                **({"system": task.system} if task.system else {}),
            )
            results = await adapter.run(task.tools, reply)
            if not results:
                return "".join(block.text for block in reply.content if block.type == "text")
            messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": results}]
    return OUT_OF_STEPS


async def openai(task: Task) -> str:
    from openai import AsyncOpenAI

    from mcprelay.adapters import openai as adapter

    items = [{"role": "user", "content": task.prompt}]
    async with AsyncOpenAI(api_key=task.key, base_url=_v1(task)) as client:
        for _ in range(task.max_steps):
            reply = await client.responses.create(
                model=task.model,
                max_output_tokens=task.max_tokens,
                instructions=task.system or None,
                input=items,
                tools=adapter.tools(task.tools),
            )
            results = await adapter.run(task.tools, reply)
            if not results:
                return reply.output_text
            items += [*(item.to_dict() for item in reply.output), *results]
    return OUT_OF_STEPS


async def openai_chat(task: Task) -> str:
    from openai import AsyncOpenAI, omit

    from mcprelay.adapters import openai_chat as adapter

    messages = [{"role": "system", "content": task.system}] if task.system else []
    messages.append({"role": "user", "content": task.prompt})
    async with AsyncOpenAI(api_key=task.key, base_url=_v1(task)) as client:
        for _ in range(task.max_steps):
            reply = await client.chat.completions.create(
                model=task.model,
                max_completion_tokens=task.max_tokens,
                messages=messages,
                tools=adapter.tools(task.tools) or omit,
            )
            message = reply.choices[0].message
            results = await adapter.run(task.tools, message)
            if not results:
                return message.content or ""
            messages += [message, *results]
    return OUT_OF_STEPS


async def google(task: Task) -> str:
    from google import genai
    from google.genai import types

    from mcprelay.adapters import google as adapter

    config = types.GenerateContentConfig(
        tools=adapter.tools(task.tools),
        system_instruction=task.system or None,
        max_output_tokens=task.max_tokens,
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    contents = [types.Content(role="user", parts=[types.Part(text=task.prompt)])]
    options = types.HttpOptions(base_url=task.base_url) if task.base_url else None
    async with genai.Client(api_key=task.key, http_options=options).aio as client:
        for _ in range(task.max_steps):
            reply = await client.models.generate_content(model=task.model, contents=contents, config=config)
            parts = await adapter.run(task.tools, reply)
            if not parts:
                return reply.text or ""
            contents += [reply.candidates[0].content, types.Content(role="user", parts=parts)]
    return OUT_OF_STEPS


async def pydantic_ai(task: Task) -> str:
    """The model's name is pydantic-ai's: `anthropic:…`, `openai:…`, `google:…`."""
    from pydantic_ai import Agent, UsageLimitExceeded, UsageLimits
    from pydantic_ai.models import infer_model
    from pydantic_ai.providers import infer_provider_class

    from mcprelay.adapters import pydantic_ai as adapter

    def provider(name: str):
        base_url = _v1(task) if name.startswith("openai") else task.base_url
        return infer_provider_class(name)(**({"api_key": task.key, "base_url": base_url} if task.key else {}))

    agent = Agent(
        infer_model(task.model, provider_factory=provider),
        tools=adapter.tools(task.tools),
        instructions=task.system or None,
        model_settings={"max_tokens": task.max_tokens},
    )
    try:
        async with agent:
            done = await agent.run(task.prompt, usage_limits=UsageLimits(request_limit=task.max_steps))
    except UsageLimitExceeded:
        return OUT_OF_STEPS
    return done.output


async def langchain(task: Task) -> str:
    """With `langchain-openai`; any other chat model of LangChain is used in the same way."""
    from langchain_core.messages import HumanMessage, SystemMessage
    from langchain_openai import ChatOpenAI

    from mcprelay.adapters import langchain as adapter

    settings = {"model": task.model, "api_key": task.key, "base_url": _v1(task), "use_responses_api": True}
    model = ChatOpenAI(max_tokens=task.max_tokens, **settings).bind_tools(adapter.tools(task.tools))
    messages = [SystemMessage(task.system)] if task.system else []
    messages.append(HumanMessage(task.prompt))
    for _ in range(task.max_steps):
        reply = await model.ainvoke(messages)
        results = await adapter.run(task.tools, reply)
        if not results:
            return reply.text
        messages += [reply, *results]
    return OUT_OF_STEPS


async def openai_agents(task: Task) -> str:
    from agents import Agent, MaxTurnsExceeded, ModelSettings, OpenAIResponsesModel, RunConfig, Runner
    from openai import AsyncOpenAI

    from mcprelay.adapters import openai_agents as adapter

    async with AsyncOpenAI(api_key=task.key, base_url=_v1(task)) as client:
        agent = Agent(
            name="agent",
            instructions=task.system or None,
            model=OpenAIResponsesModel(task.model, client),
            model_settings=ModelSettings(max_tokens=task.max_tokens),
            tools=adapter.tools(task.tools),
        )
        try:
            done = await Runner.run(
                agent, task.prompt, max_turns=task.max_steps, run_config=RunConfig(tracing_disabled=True)
            )
        except MaxTurnsExceeded:
            return OUT_OF_STEPS
    return str(done.final_output)


def _v1(task: Task) -> str | None:
    return f"{task.base_url}/v1" if task.base_url else None


LOOPS = {
    "anthropic": anthropic,
    "openai": openai,
    "openai-chat": openai_chat,
    "google": google,
    "pydantic-ai": pydantic_ai,
    "langchain": langchain,
    "openai-agents": openai_agents,
}
PACKAGES = {
    "anthropic": "anthropic",
    "openai": "openai",
    "openai-chat": "openai",
    "google": "google-genai",
    "pydantic-ai": "pydantic-ai",
    "langchain": "langchain-core langchain-openai",
    "openai-agents": "openai-agents",
}
"""What each loop imports, as `pip install` calls it."""


async def answer(provider: str, task: Task) -> str:
    """What the model comes to. An SDK that is not installed ends the program with a sentence."""
    try:
        return await LOOPS[provider](task)
    except ImportError as missing:
        sys.exit(f"--provider {provider}: {missing}. It takes: pip install {PACKAGES[provider]}")


# ----------------------------------------------------------------------------------------- what a person sees, and says


class Calls(logging.Handler):
    """Prints the relay's record of each call: what became of it, never what is in it."""

    def emit(self, record: logging.LogRecord) -> None:
        told = record.audit
        if told["event"] == "call":
            print(f"  ← {told['server']} {told['tool']}: {told['verdict']}, {told.get('size', 0):,} bytes", flush=True)


def gate(asked: list[str]):
    """Every call is printed; those of the tools named here take a person's consent."""

    def consent(call):
        print(f"  → {call.name} {json.dumps(call.arguments, ensure_ascii=True)}", flush=True)
        return ask(at_the_terminal) if "*" in asked or call.name in asked else allow()

    return consent


def visible(text: str) -> str:
    """A model's words for a terminal: what it would obey, and what turns lines around, is shown as an escape."""
    return "".join(char if char.isprintable() or char in "\n\t" else f"\\u{ord(char):04x}" for char in text)


async def at_the_terminal(question) -> bool:
    async with ONE_QUESTION:  # calls come all at once
        print(question.text, flush=True)
        return (await typed("  Run it? [y/N] ")).strip().lower() in {"y", "yes"}


async def typed(prompt: str) -> str:
    """A line that a person types; nothing at the end of input.

    The thread is a daemon, and holds no lock of `sys.stdin`: at Ctrl-C nobody waits for Enter. What is typed after the
    question's time is over still belongs to that question, and so answers no other one.
    """
    loop = asyncio.get_running_loop()
    answer = loop.create_future()

    def told(line: str) -> None:
        if not answer.done():
            answer.set_result(line)

    def read() -> None:
        with ONE_READER:
            line = b""
            while (byte := os.read(0, 1)) not in (b"", b"\n"):
                line += byte
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(told, line.decode(errors="replace"))

    print(prompt, end="", flush=True)
    threading.Thread(target=read, daemon=True).start()
    return await answer


# ----------------------------------------------------------------------------------------------------- the command line


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prompt")
    parser.add_argument("--provider", choices=LOOPS, default="anthropic")
    parser.add_argument("--model", help="as the provider calls it")
    parser.add_argument("--system", type=Path, metavar="FILE", help="a file with the system prompt")
    parser.add_argument("--max-steps", type=int, default=10, metavar="N", help="requests to the model at most")
    parser.add_argument("--max-tokens", type=int, default=2048, metavar="N", help="tokens of one reply at most")
    parser.add_argument("--config", type=Path, default=HERE / "mcprelay.toml", metavar="FILE")
    parser.add_argument("--server", action="append", default=[], metavar="NAME", help="only this server (repeatable)")
    parser.add_argument("--ask", action="append", default=[], metavar="TOOL", help='ask before this tool; "*" is all')
    parser.add_argument("--offline", action="store_true", help="a scripted model, and the server time alone")
    given = parser.parse_args()
    if not given.offline and not given.model:
        parser.error("--model says which model to use (or try --offline)")
    return given


async def main() -> None:
    given = arguments()
    audit = logging.getLogger("mcprelay.relay.audit")
    audit.addHandler(Calls())
    audit.setLevel(logging.INFO)
    async with AsyncExitStack() as stack:
        scripted = {}
        if given.offline:
            from scripted_provider import WORLD_CLOCK, Provider

            provider = await stack.enter_async_context(Provider(WORLD_CLOCK))
            scripted = {"base_url": provider.url, "key": "scripted"}
        env = {"PYTHON": sys.executable, **os.environ}
        relay = await stack.enter_async_context(Relay.load(given.config, env=env, gate=gate(given.ask)))
        tools = await relay.tools(*(given.server or (["time"] if given.offline else [])))
        print(tools.report())
        task = Task(
            tools=tools,
            prompt=given.prompt,
            model=given.model or {"pydantic-ai": "anthropic:scripted"}.get(given.provider, "scripted"),
            system=given.system.read_text(encoding="utf-8") if given.system else "",
            max_steps=given.max_steps,
            max_tokens=given.max_tokens,
            **scripted,
        )
        print(visible(await answer(given.provider, task)))


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        sys.exit(130)  # as a shell calls it
