"""The example agent, as a program: a real reference server, a scripted model, a person who agrees or does not."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SDKS = {
    "anthropic": "anthropic",
    "openai": "openai",
    "openai-chat": "openai",
    "google": "google.genai",
    "pydantic-ai": "pydantic_ai",
    "langchain": "langchain_openai",
    "openai-agents": "agents",
}


def program(*arguments: str, before: Sequence[Path] = ()) -> dict[str, Any]:
    pytest.importorskip("mcp_server_time")
    command = [sys.executable, str(ROOT / "examples" / "agent.py"), *arguments]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*before, ROOT / "src"]))}
    return {"args": command, "text": True, "env": env}


def agent(*arguments: str, typed: str = "", before: Sequence[Path] = ()) -> subprocess.CompletedProcess[str]:
    made = program(*arguments, before=before)
    return subprocess.run(**made, input=typed, capture_output=True, timeout=100, check=False)


def started(*arguments: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(**program(*arguments), stdin=pipe, stdout=pipe, stderr=pipe)


@pytest.mark.parametrize("provider", SDKS)
def test_it_runs_offline_with_a_reference_server(provider: str, tmp_path: Path):
    pytest.importorskip(SDKS[provider])
    system = tmp_path / "system.txt"
    system.write_text("Be brief.", encoding="utf-8")
    done = agent("--offline", "--provider", provider, "--system", str(system), "Noon in Tokyo?")
    assert done.returncode == 0, done.stderr
    assert "offered: 2 tools: time__get_current_time, time__convert_time" in done.stdout
    assert '→ time__get_current_time {"timezone": "UTC"}' in done.stdout
    assert "← time convert_time: shown" in done.stdout
    assert "← time get_current_time: failed" in done.stdout
    assert done.stdout.rstrip().endswith("Nobody knows what time it is in Atlantis.")


@pytest.mark.parametrize(("typed", "verdict"), [("y\n", "shown"), ("n\n", "denied"), ("", "denied")])
def test_it_asks_before_a_call_that_takes_consent(typed: str, verdict: str):
    pytest.importorskip("anthropic")
    done = agent("--offline", "--ask", "time__convert_time", "Noon in Tokyo?", typed=typed)
    assert done.returncode == 0, done.stderr
    assert "Run time__convert_time, which is convert_time of time?" in done.stdout
    assert f"← time convert_time: {verdict}" in done.stdout


def test_an_interrupt_ends_it_at_once_while_it_asks():
    pytest.importorskip("anthropic")
    with started("--offline", "--ask", "time__convert_time", "Noon in Tokyo?") as process:
        assert process.stdout is not None
        seen = ""
        while "[y/N]" not in seen:
            more = process.stdout.read(1)
            assert more, seen
            seen += more
        process.send_signal(signal.SIGINT)  # nobody types anything
        assert process.wait(timeout=60) == 130
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


NASTY = """
import asyncio, sys
sys.path.insert(0, sys.argv.pop(1))
import agent

async def nasty(task):
    return "one\\ttwo\\nthree\\x1b[2J\\x9b\\u202e\\r Größe 😀"

agent.LOOPS["anthropic"] = nasty
asyncio.run(agent.main())
"""


def test_what_a_model_says_commands_no_terminal():
    pytest.importorskip("mcp_server_time")
    command = [sys.executable, "-c", NASTY, str(ROOT / "examples"), "--offline", "Noon in Tokyo?"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, capture_output=True, env=env, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    shown = "one\ttwo\nthree\\u001b[2J\\u009b\\u202e\\u000d Größe 😀\n"
    assert done.stdout.decode().endswith(shown)


def test_it_stops_when_it_has_no_steps_left():
    pytest.importorskip("anthropic")
    done = agent("--offline", "--max-steps", "1", "Noon in Tokyo?")
    assert done.stdout.rstrip().endswith("(stopped: no steps left)")


@pytest.mark.parametrize("provider", SDKS)
def test_it_says_what_to_install_where_an_sdk_is_missing(provider: str, tmp_path: Path):
    name = SDKS[provider].partition(".")[0]
    (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError(\"No module named '{name}'\", name='{name}')")
    done = agent("--offline", "--provider", provider, "Noon in Tokyo?", before=[tmp_path])
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert f"--provider {provider}: No module named '{name}'. It takes: pip install " in last


def test_it_says_which_setting_is_missing():
    done = agent("Noon in Tokyo?")
    assert done.returncode == 2
    assert "--model says which model to use" in done.stderr


def test_all_servers_of_its_file_can_be_used():
    pytest.importorskip("anthropic")
    pytest.importorskip("mcp_server_git")
    done = agent("--offline", "--server", "time", "--server", "git", "Noon in Tokyo?")
    assert done.returncode == 0, done.stderr
    assert "git__git_log" in done.stdout
