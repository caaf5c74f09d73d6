"""What is run against what, and what of the protocol each run proves. The table in the documentation is made of this.

A run is a test; what it lacks is what the peer does not have or does not do, and the test does not look for it.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tests.interop.peer import PEERS, Peer

Transport: TypeAlias = Literal["stdio", "http", "sse"]

FEATURES = (
    "tools",
    "values",
    "errors",
    "resources",
    "templates",
    "prompts",
    "completion",
    "progress",
    "logs",
    "forms",
    "sampling",
    "roots",
    "changes",
)
SHOWN = {"stdio": "stdio", "http": "Streamable HTTP", "sse": "HTTP+SSE"}

MODERN = "2026-07-28"
LEGACY = "2025-11-25"


@dataclass(frozen=True)
class Run:
    """One side of ours against one peer over one transport.

    Attributes:
        name: The peer.
        program: Which of its programs, without the ending.
        transport: How they speak.
        revision: What they agree on.
        lacks: Features that the peer does not have or does not do.
        arguments: More arguments of a client's program.
        pinned: Whether our client speaks only this revision; else it finds out.
    """

    name: str
    program: str
    transport: Transport
    revision: str
    lacks: frozenset[str] = frozenset()
    arguments: tuple[str, ...] = ()
    pinned: bool = False

    @property
    def peer(self) -> Peer:
        """The peer."""
        return PEERS[self.name]

    @property
    def id(self) -> str:
        """The name of the test."""
        return f"{self.name}-{self.transport}-{self.revision}"

    def shows(self, feature: str) -> bool:
        """Whether the run proves a feature."""
        return feature not in self.lacks


def _runs(
    name: str,
    program: str,
    *cases: tuple[Transport, str],
    lacks: str = "",
    mode: bool = False,
    revise: bool = False,
    pin: bool = False,
) -> list[Run]:
    runs = []
    for transport, revision in cases:
        arguments: tuple[str, ...] = ()
        if mode:
            arguments = ("auto" if revision == MODERN else "legacy",)
        if revise and revision != LEGACY:
            arguments = (revision,)
        pinned = pin and revision != PEERS_SPEAK[name]
        runs.append(Run(name, program, transport, revision, frozenset(lacks.split()), arguments, pinned))
    return runs


PEERS_SPEAK = {
    "python-1": LEGACY,
    "python-2": MODERN,
    "fastmcp": MODERN,
    "typescript-1": LEGACY,
    "typescript-2": MODERN,
}
"""The newest revision of each."""

OLD = "forms values"
"""What the revisions without forms and structured content lack."""

CLIENTS: list[Run] = [
    *_runs("python-2", "client_python_2", ("stdio", MODERN), ("http", MODERN), mode=True),
    *_runs("python-2", "client_python_2", ("stdio", LEGACY), ("http", LEGACY), ("sse", LEGACY), mode=True),
    *_runs("python-1", "client_python_1", ("stdio", LEGACY), ("http", LEGACY), ("sse", LEGACY)),
    *_runs("python-1", "client_python_1", ("stdio", "2025-06-18"), ("http", "2025-06-18"), revise=True),
    *_runs("python-1", "client_python_1", ("stdio", "2025-03-26"), ("http", "2025-03-26"), revise=True, lacks=OLD),
    *_runs("python-1", "client_python_1", ("stdio", "2024-11-05"), ("sse", "2024-11-05"), revise=True, lacks=OLD),
    *_runs("typescript-2", "client_typescript_2", ("stdio", MODERN), ("http", MODERN), mode=True),
    *_runs("typescript-2", "client_typescript_2", ("stdio", LEGACY), ("http", LEGACY), ("sse", LEGACY), mode=True),
    *_runs("typescript-1", "client_typescript_1", ("stdio", LEGACY), ("http", LEGACY), ("sse", LEGACY)),
    *_runs("fastmcp", "client_fastmcp", ("stdio", MODERN), ("http", MODERN), mode=True, lacks="changes"),
    *_runs("fastmcp", "client_fastmcp", ("stdio", LEGACY), ("http", LEGACY), ("sse", LEGACY), mode=True),
    *_runs(
        "pydantic-ai",
        "client_pydantic_ai",
        ("stdio", MODERN),
        ("http", MODERN),
        ("sse", LEGACY),
        lacks="completion progress logs changes",
    ),
    *_runs(
        "langchain",
        "client_langchain",
        ("stdio", LEGACY),
        ("http", LEGACY),
        ("sse", LEGACY),
        lacks="completion sampling roots changes",
    ),
    *_runs(
        "inspector",
        "client_inspector",
        ("stdio", LEGACY),
        ("http", LEGACY),
        ("sse", LEGACY),
        lacks="completion progress logs forms sampling roots changes",
    ),
]
"""Our server under clients of other people."""

SERVERS: list[Run] = [
    *_runs("python-2", "server_python_2", ("stdio", MODERN), ("http", MODERN), pin=True),
    *_runs("python-2", "server_python_2", ("stdio", LEGACY), ("http", LEGACY), pin=True),
    Run("python-2", "server_python_2", "sse", LEGACY),
    *_runs("python-1", "server_python_1", ("stdio", LEGACY), ("http", LEGACY), ("sse", LEGACY), pin=True),
    *_runs("python-1", "server_python_1", ("stdio", "2025-06-18"), ("http", "2025-06-18"), pin=True),
    *_runs("python-1", "server_python_1", ("stdio", "2025-03-26"), ("http", "2025-03-26"), pin=True, lacks="forms"),
    *_runs("python-1", "server_python_1", ("stdio", "2024-11-05"), ("sse", "2024-11-05"), pin=True, lacks="forms"),
    *_runs("typescript-2", "server_typescript_2", ("stdio", MODERN), ("http", MODERN), pin=True),
    Run("typescript-2", "server_typescript_2", "stdio", LEGACY, pinned=True),
    Run(
        "typescript-2",
        "server_typescript_2",
        "http",
        LEGACY,
        frozenset(("forms", "sampling", "roots", "changes")),
        pinned=True,
    ),
    *_runs("typescript-1", "server_typescript_1", ("stdio", LEGACY), ("http", LEGACY), ("sse", LEGACY), pin=True),
    Run("typescript-1", "server_typescript_1", "stdio", "2024-11-05", frozenset(("forms",)), pinned=True),
    *_runs(
        "fastmcp",
        "server_fastmcp",
        ("stdio", MODERN),
        ("http", MODERN),
        lacks="completion forms sampling roots changes",
    ),
    *_runs("fastmcp", "server_fastmcp", ("stdio", LEGACY), ("http", LEGACY), lacks="completion", pin=True),
    Run("fastmcp", "server_fastmcp", "sse", LEGACY, frozenset(("completion",))),
]
"""Our client against servers of other people."""

NOTHING_ELSE = "templates prompts completion progress logs forms sampling roots changes"

REFERENCES: list[Run] = [
    *_runs(
        "everything",
        "mcp-server-everything",
        ("stdio", LEGACY),
        ("http", LEGACY),
        ("sse", LEGACY),
    ),
    *_runs(
        "filesystem",
        "mcp-server-filesystem",
        ("stdio", LEGACY),
        lacks="values resources templates prompts completion progress logs forms sampling changes",
    ),
    *_runs("memory", "mcp-server-memory", ("stdio", LEGACY), lacks=NOTHING_ELSE),
    *_runs("server-git", "mcp-server-git", ("stdio", MODERN), lacks=f"values resources {NOTHING_ELSE}"),
    *_runs("server-time", "mcp-server-time", ("stdio", MODERN), lacks=f"values resources {NOTHING_ELSE}"),
    *_runs(
        "server-fetch",
        "mcp-server-fetch",
        ("stdio", MODERN),
        lacks="values resources templates completion progress logs forms sampling roots changes",
    ),
]
"""Our client against the reference servers."""
