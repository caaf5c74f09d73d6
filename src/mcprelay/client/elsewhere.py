"""What other packages call options that have another name here, and what is not an option here.

Knows words only: those of the official SDK, FastMCP, adapters for LangChain, httpx, aiohttp and requests. Spelling is
`wire.spelling`'s; it misleads where two packages have words for one thing that do not look alike, or look like a third.
"""

from __future__ import annotations

from collections.abc import Collection

_OURS: dict[str, tuple[str, ...]] = {
    # how long
    "timeout": ("timeout", "request_timeout"),
    "read_timeout": ("timeout", "request_timeout"),
    "read_timeout_seconds": ("timeout", "request_timeout"),
    "request_timeout": ("timeout", "request_timeout"),
    "sse_read_timeout": ("timeout", "request_timeout"),
    "sock_read": ("timeout", "request_timeout"),
    "tool_timeout": ("timeout", "request_timeout"),
    "default_timeout": ("timeout", "request_timeout"),
    "timeout_seconds": ("timeout", "request_timeout"),
    "timeout_ms": ("timeout", "request_timeout"),
    "init_timeout": ("connect_timeout",),
    "initialization_timeout": ("connect_timeout",),
    "conn_timeout": ("connect_timeout",),
    "sock_connect": ("connect_timeout",),
    "max_retries": ("retry",),
    "retries": ("retry",),
    "max_connections": ("connections",),
    "limits": ("settings",),
    # who asks, and who answers
    "sampling_callback": ("on_sample",),
    "sampling_handler": ("on_sample",),
    "elicitation_callback": ("on_elicit",),
    "elicitation_handler": ("on_elicit",),
    "list_roots_callback": ("on_roots",),
    "roots": ("on_roots",),
    "logging_callback": ("on_log",),
    "log_handler": ("on_log",),
    "logging_level": ("log_level",),
    "progress_callback": ("on_progress",),
    "progress_handler": ("on_progress",),
    "sampling_capabilities": ("capabilities",),
    "client_name": ("client_info",),
    "name": ("client_info",),
    "version": ("client_info",),
    "protocol_version": ("revision",),
    "mode": ("revision",),
    # how it is reached
    "token": ("auth",),
    "bearer": ("auth",),
    "bearer_token": ("auth",),
    "access_token": ("auth",),
    "api_key": ("auth",),
    "authorization": ("auth",),
    "cookies": ("headers",),
    "extra_headers": ("headers",),
    "environment": ("env",),
    "environ": ("env",),
    "working_directory": ("cwd",),
    "errlog": ("stderr",),
    "log_file": ("stderr",),
    "verify": ("ssl",),
    "verify_ssl": ("ssl",),
    "ssl_verify": ("ssl",),
    "ssl_context": ("ssl",),
    "tls": ("ssl",),
    "cert": ("ssl",),
    "ca_bundle": ("ssl",),
    "cafile": ("ssl",),
    "proxies": ("proxy",),
    "http_proxy": ("proxy",),
    "https_proxy": ("proxy",),
    "mounts": ("proxy",),
    "http_client": ("sender",),
    "httpx_client_factory": ("sender",),
    "session": ("sender",),
    "connector": ("sender",),
    # of a call
    "args": ("arguments",),
    "params": ("arguments",),
    "input": ("arguments",),
    "_meta": ("meta",),
    "output_type": ("output",),
    "output_schema": ("output",),
    "response_model": ("output",),
    "result_type": ("output",),
}
"""Their words, and ours: the first that is an option of what was called."""

_NONE = {
    "args": "a command is one list with its arguments: ['python', 'server.py', '--verbose']",
    "command": "a command comes first, as one list: ['python', 'server.py']",
    "transport": "what comes first says it: an address, a command, a Server or a Channel",
    "url": "the address comes first",
    "params": "a query is a part of the address",
    "message_handler": "client.listen() hears of changes, on_log= of log messages, on_progress= of progress",
    "follow_redirects": "redirects are not followed: credentials stay with the address that you named",
    "allow_redirects": "redirects are not followed: credentials stay with the address that you named",
    "raise_on_error": "call_tool() raises what a tool refuses as ToolError, try_call_tool() returns it",
    "raise_on_tool_error": "call_tool() raises what a tool refuses as ToolError, try_call_tool() returns it",
    "auto_initialize": "the client finds out by itself what the server speaks",
    "terminate_on_close": "aclose() ends a session where there is one",
    "encoding": "messages are UTF-8",
}
"""Their words for what is no option here, and what takes its place."""


def ours(word: str, known: Collection[str]) -> str | None:
    """What a word of another package's is here, as a sentence; None where nothing is known of it.

    Args:
        word: An option that is not known.
        known: Those that are.
    """
    option = next((option for option in _OURS.get(word.lower(), ()) if option in known), None)
    if option is not None:
        return f"it is called {option!r} here"
    return _NONE.get(word.lower())
