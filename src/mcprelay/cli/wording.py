"""What an error tells a program to do, in the words of the command line.

The errors of the package advise arguments of Python. Whoever runs a command has options and `mcprelay.toml` instead.
"""

from __future__ import annotations

import re

_HERE = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"allow it with allowed_hosts=\['([^']*)'\]", r"allow it: mcprelay login --allow-host \1"),
        (
            r"allow_plaintext=True of a client, or insecure_hosts=\[[^]]*\] of what it has for auth",
            "set allow_plaintext = true for the server in mcprelay.toml",
        ),
        (r"\. Allow it with insecure_hosts=\[[^]]*\]", ". Only https will do"),
        (r"^headers: (.*): leave it out to log in", r"headers in mcprelay.toml: \1: take it out there to log in"),
        (r"allow_plaintext=True where", "allow_plaintext = true for the server in mcprelay.toml, where"),
        (r"say allow_unauthenticated=True", "say --allow-unauthenticated"),
        (r"\(auth=\.\.\., headers=\.\.\.\)", "(--token, --header)"),
        (r"give them as auth=", "give them with --token or --header"),
        (r"put them into proxy=", "put them into the address of proxy in mcprelay.toml"),
        (r"those in proxy=, or in the environment's address of it", "those in the address of proxy in mcprelay.toml"),
        (
            r"named with ssl=, or SSL_CERT_FILE in the environment",
            "named with ca_file in mcprelay.toml, or SSL_CERT_FILE",
        ),
        (r"pass client=Registered\([^)]*\); on the command line, --client-id", "give it with --client-id"),
        (r", or set resource= to it when you know it to be right", ""),
        (r'; when you know that it does, set pkce="assumed"', ""),
        (r"client\.server says what it offers", "`mcprelay tools`, `resources` and `prompts` list what it offers"),
        (r"; give the client on_[^;]*, or go on with error\.question\.answer\(.*\)$", ""),
        (r"give the client on_elicit=", "run it at a terminal"),
        (r"the server asks, and no handler answers", "the server asks, and nobody is at a terminal to answer"),
        (
            r"within (?:connect|request)_timeout=(\S+) seconds",
            r"within \1 seconds (--timeout, or timeout in mcprelay.toml)",
        ),
    )
)


def reworded(text: str) -> str:
    """A sentence of the package as whoever runs a command can act on it."""
    for pattern, words in _HERE:
        text = pattern.sub(words, text)
    return text
