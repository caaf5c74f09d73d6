"""A server that lets in who has a token: some tools only with the right scope.

Serve it at http://127.0.0.1:8000/mcp:   python examples/protect.py
Call it:   mcprelay call http://127.0.0.1:8000/mcp whoami --token ada-token
"""

import os

from mcprelay import Context, Server
from mcprelay.auth.resource import Attestation, Bearer
from mcprelay.auth.verifier import StaticTokens

PORT = int(os.environ.get("PORT", "8000"))
RESOURCE = f"http://127.0.0.1:{PORT}/mcp"  # exactly as tokens name it


def token_for(name: str, *scopes: str) -> Attestation:
    return Attestation(subject=name, audiences=(RESOURCE,), scopes=frozenset(scopes))


# For real: JwtVerifier(issuer=…, jwks_url=…) or Introspection(url, …), of the same module.
tokens = StaticTokens(
    {
        "ada-token": token_for("ada", "read"),
        "grace-token": token_for("grace", "read", "admin"),
    }
)
server = Server("private", version="1.0.0", auth=Bearer(tokens, resource=RESOURCE, scopes=["read"]))


@server.tool(read_only=True)
def whoami(ctx: Context) -> str:
    """Who calls."""
    return ctx.principal.subject


@server.tool(requires=["admin"])
def restart(service: str) -> str:
    """Restart a service. To a caller without the scope `admin` there is no such tool."""
    return f"{service} restarted"


if __name__ == "__main__":
    server.run("http", port=PORT)
