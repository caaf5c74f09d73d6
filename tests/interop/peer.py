"""Programs of other people, each in an environment of its own, which the first run makes.

Knows which packages at which versions, how they are installed below `.tools/interop`, and how the programs of
`programs/` are started with them. Does not know what is done with them.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HOME = Path(os.environ.get("INTEROP_HOME", ROOT / ".tools" / "interop"))
PROGRAMS = HERE / "programs"
INSTALL_SECONDS = 600
NODE = "22.23.3"
"""The Node.js, itself a package of npm, for programs that need a newer one than a machine may have."""


@dataclass(frozen=True)
class Peer:
    """An environment with one or more packages of other people.

    Attributes:
        name: The name of its folder.
        packages: What is installed, with exact versions.
        shown: How the table in the documentation calls it.
    """

    name: str
    packages: tuple[str, ...]
    shown: str

    @property
    def home(self) -> Path:
        """The environment."""
        return HOME / self.name

    @property
    def is_installed(self) -> bool:
        """Whether it holds what is wanted now."""
        stamp = self.home / ".installed"
        return stamp.exists() and stamp.read_text(encoding="utf-8") == self._wanted

    @property
    def _wanted(self) -> str:
        return "\n".join((sys.version if isinstance(self, Python) else "", *self.packages))

    def install(self) -> None:
        """Make the environment, unless it is there.

        Raises:
            pytest.skip.Exception: It cannot be had; the reason says why.
        """
        if self.is_installed:
            return
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        try:
            self._install()
        except FileNotFoundError as error:
            pytest.skip(f"{self.name}: {error.filename} is not on this machine")
        except subprocess.TimeoutExpired:
            pytest.skip(f"{self.name}: not installed within {INSTALL_SECONDS} s")
        except subprocess.CalledProcessError as error:
            last = (error.stderr or b"").decode(errors="replace").strip().splitlines()[-3:]
            pytest.skip(f"{self.name}: {' '.join(self.packages)} could not be installed: {' / '.join(last)}")
        (self.home / ".installed").write_text(self._wanted, encoding="utf-8")

    def _install(self) -> None:
        raise NotImplementedError

    def command(self, program: str, *arguments: str) -> list[str]:
        """How to start a program of `programs/`, or one that the packages brought."""
        raise NotImplementedError

    @property
    def environment(self) -> dict[str, str]:
        """Variables that its programs need."""
        return {}


@dataclass(frozen=True)
class Python(Peer):
    """Packages of PyPI."""

    @property
    def _bin(self) -> Path:
        return self.home / ("Scripts" if os.name == "nt" else "bin")

    def _install(self) -> None:
        _run([sys.executable, "-m", "venv", str(self.home)])
        _run([str(self._bin / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", *self.packages])

    def command(self, program: str, *arguments: str) -> list[str]:
        """See `Peer`."""
        if program.endswith(".py"):
            return [str(self._bin / "python"), str(PROGRAMS / program), *arguments]
        return [str(self._bin / program), *arguments]


@dataclass(frozen=True)
class Npm(Peer):
    """Packages of npm.

    Attributes:
        own_node: Whether Node.js is one of them.
    """

    own_node: bool = False

    def _install(self) -> None:
        name, scripts = f"interop-{self.name}", {"node": True}
        found = dict(package.rsplit("@", 1) for package in self.packages)
        manifest: dict[str, Any] = {"name": name, "private": True, "dependencies": found, "allowScripts": scripts}
        (self.home / "package.json").write_text(json.dumps(manifest), encoding="utf-8")
        _run(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"], cwd=self.home)

    def command(self, program: str, *arguments: str) -> list[str]:
        """See `Peer`. A program is run where its imports find the packages."""
        node = str(self.home / "node_modules" / ".bin" / "node") if self.own_node else "node"
        if program.endswith(".mjs"):
            for path in PROGRAMS.glob("*.mjs"):
                shutil.copyfile(path, self.home / path.name)
            return [node, str(self.home / program), *arguments]
        return [node, str((self.home / "node_modules" / ".bin" / program).resolve()), *arguments]

    @property
    def environment(self) -> dict[str, str]:
        """See `Peer`."""
        if not self.own_node:
            return {}
        return {"PATH": os.pathsep.join((str(self.home / "node_modules" / ".bin"), os.environ.get("PATH", "")))}


def _run(command: list[str], *, cwd: Path | None = None) -> None:
    subprocess.run(command, check=True, capture_output=True, cwd=cwd, timeout=INSTALL_SECONDS, stdin=subprocess.DEVNULL)


PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Python("python-2", ("mcp==2.3.0",), "Official Python SDK 2.3.0"),
        Python("python-1", ("mcp==1.30.0",), "Official Python SDK 1.30.0"),
        Python("fastmcp", ("fastmcp==4.2.3",), "FastMCP 4.2.3"),
        Python("pydantic-ai", ("pydantic-ai-slim[mcp]==2.68.0",), "Pydantic AI 2.68.0"),
        Python("langchain", ("langchain-mcp-adapters==0.3.2", "mcp<2"), "LangChain MCP adapters 0.3.2"),
        Python("server-git", ("mcp-server-git==2026.10.19",), "mcp-server-git 2026.10.19"),
        Python("server-time", ("mcp-server-time==2026.10.19",), "mcp-server-time 2026.10.19"),
        Python("server-fetch", ("mcp-server-fetch==2026.10.24",), "mcp-server-fetch 2026.10.24"),
        Npm(
            "typescript-2",
            (
                "@modelcontextprotocol/client@2.4.0",
                "@modelcontextprotocol/server@2.4.0",
                "@modelcontextprotocol/node@2.1.2",
                "zod@4.6.7",
            ),
            "Official TypeScript SDK 2.4.0",
        ),
        Npm("typescript-1", ("@modelcontextprotocol/sdk@1.32.2", "zod@3.25.76"), "Official TypeScript SDK 1.32.2"),
        Npm(
            "inspector",
            ("@modelcontextprotocol/inspector@2.12.0", f"node@{NODE}"),
            "Inspector command line 2.12.0",
            own_node=True,
        ),
        Npm("everything", ("@modelcontextprotocol/server-everything@2026.8.31",), "server-everything 2026.8.31"),
        Npm("filesystem", ("@modelcontextprotocol/server-filesystem@2026.8.31",), "server-filesystem 2026.8.31"),
        Npm("memory", ("@modelcontextprotocol/server-memory@2026.8.31",), "server-memory 2026.8.31"),
    )
}
