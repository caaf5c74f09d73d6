"""The page for those who come from another package names only what there is."""

import importlib
import inspect
import re
from pathlib import Path

import pytest
from msgspec.structs import fields

import mcprelay
from mcprelay import Client, Context, Image, NeedsInput, Relay, Result, Server, ToolResult
from mcprelay.adapters import langchain
from mcprelay.auth import OAuth, Registered
from mcprelay.auth.resource import Bearer
from mcprelay.auth.verifier import JwtVerifier
from mcprelay.client.setting import Settings
from mcprelay.relay import Limits, Report, ToolSet
from mcprelay.relay.frame import Framed
from mcprelay.relay.guarded import GuardedTool
from mcprelay.relay.settings import ServerSettings
from mcprelay.server import Limits as ServerLimits
from mcprelay.server.call import Call
from mcprelay.server.context import Elicited
from mcprelay.server.option import KNOWN, RunOptions

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coming-from.md"
ROWS = [
    re.split(r"(?<!\\) \| ", line.strip("| "), maxsplit=1)
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| There")
]
OURS = [code for row in ROWS for code in re.findall(r"`([^`]+)`", row[1])]
PACKAGES = [
    "mcprelay",
    "mcprelay.relay",
    "mcprelay.auth",
    "mcprelay.server",
    "mcprelay.ports",
    "mcprelay.auth.resource",
    "mcprelay.auth.verifier",
]
THEIRS = {"Annotated", "Path", "Authorization", "Different", "None", "True", "Database", "Model", "ToolMessage"}
OWNERS = {
    "relay": Relay,
    "Relay": Relay,
    "server": Server,
    "client": Client,
    "tools": ToolSet,
    "report": Report,
    "tool": GuardedTool,
    "framed": Framed,
    "ctx": Context,
    "answer": Elicited,
    "asked": NeedsInput,
    "call": Call,
    "langchain": langchain,
    "result": Result,
    "Image": Image,
}


def test_every_row_has_an_answer():
    assert len(ROWS) > 100
    assert all(len(row) == 2 and row[1] for row in ROWS)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"\b[A-Z][a-z]+[A-Za-z]*\b", " ".join(OURS))) - THEIRS))
def test_a_class_that_is_named_exists(name):
    assert any(hasattr(importlib.import_module(package), name) for package in PACKAGES)


@pytest.mark.parametrize(
    ("owner", "member"), sorted({pair for code in OURS for pair in re.findall(r"(?<![\w.])(\w+)\.([a-z_]+)", code)})
)
def test_a_member_that_is_named_exists(owner, member):
    kind = OWNERS.get(owner)
    if kind is None:
        assert owner in {
            "mcprelay",
            "servers",
            "mcp",
            "examples",
            "error",
            "running",
            "agent",
            "websocket_channel",
            "authorization",
            "message",
            "shop",
            "sys",
        }
        return
    assert hasattr(kind, member) or member in getattr(kind, "__slots__", ()) or member in inspect.getsource(kind)


TAKING = (
    *(Relay, Relay.tools, Relay.server, Server, Server.add_tool, Server.discover, Server.run, mcprelay.define),
    *(Client, Client.call_tool, Client.list_tools, Client.listen, Context.sample),
    *(Bearer, JwtVerifier, OAuth, Registered, ToolResult),
)
STRUCTS = (ServerSettings, Limits, Settings, ServerLimits)
SETTINGS = {field.name for struct in STRUCTS for field in fields(struct)} | {"hintless", "path"}
OPTIONS = (
    {name for function in TAKING for name in inspect.signature(function).parameters}
    | {name for known in KNOWN.values() for name in known}
    | set(RunOptions.__annotations__)
)


@pytest.mark.parametrize(
    "setting", sorted({name for code in OURS for name in re.findall(r"(?<![\w.])([a-z_]+) ?= ?(?![=>])", code)})
)
def test_a_setting_or_option_that_is_named_exists(setting):
    assert setting in SETTINGS | OPTIONS | {"audience", "tool", "retry", "key", "status"}
