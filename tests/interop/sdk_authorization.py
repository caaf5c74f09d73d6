"""An MCP server of the official SDK that is its own authorization server. Run with the SDK's Python: PORT [LIFETIME].

Everything is kept in memory, everyone who asks is authorized, and refresh tokens are good for one use.
"""

import secrets
import sys
import time

from mcp.server.auth.provider import AccessToken, AuthorizationCode, RefreshToken, TokenError, construct_redirect_uri
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthToken


class Provider:
    """The SDK's authorization server asks this what to remember."""

    def __init__(self, lifetime: int) -> None:
        self.lifetime = lifetime
        self.clients = {}
        self.codes = {}
        self.access = {}
        self.refresh = {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = secrets.token_urlsafe(32)
        self.codes[code] = AuthorizationCode(
            code=code,
            client_id=client.client_id,
            scopes=params.scopes or ["mcp"],
            expires_at=time.time() + 60,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self._issue(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client, refresh_token):
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        if self.refresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant", "used already")
        return self._issue(client, scopes, refresh_token.resource)

    async def load_access_token(self, token):
        found = self.access.get(token)
        return found if found is not None and found.expires_at > time.time() else None

    async def revoke_token(self, token):
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def _issue(self, client, scopes, resource):
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        known = {"client_id": client.client_id, "scopes": scopes, "resource": resource}
        self.access[access] = AccessToken(token=access, expires_at=int(time.time()) + self.lifetime, **known)
        self.refresh[refresh] = RefreshToken(token=refresh, **known)
        return OAuthToken(access_token=access, expires_in=self.lifetime, refresh_token=refresh, scope=" ".join(scopes))


def main() -> None:
    port = int(sys.argv[1])
    lifetime = int(sys.argv[2]) if len(sys.argv) > 2 else 3600
    url = f"http://127.0.0.1:{port}"
    server = MCPServer(
        "protected",
        auth_server_provider=Provider(lifetime),
        auth=AuthSettings(
            issuer_url=url,
            resource_server_url=f"{url}/mcp",
            required_scopes=["mcp"],
            validate_token_resource=True,
            client_registration_options=ClientRegistrationOptions(
                enabled=True, valid_scopes=["mcp"], default_scopes=["mcp"]
            ),
            revocation_options=RevocationOptions(enabled=True),
        ),
    )

    @server.tool()
    def whoami() -> str:
        """Say that the call was let in."""
        return "someone with a token"

    server.run("streamable-http", host="127.0.0.1", port=port)


if __name__ == "__main__":
    main()
