"""An authorization server made with authlib, and beside it a server of the official SDK that takes its tokens.

Run with a Python that has both: PORT of the authorization server, PORT of the MCP server. The first serves a tenant
below a path, registers clients on the spot, answers with `iss`, and is strict as authlib is.
"""

import asyncio
import base64
import json
import secrets
import sys
import threading
import time
import urllib.parse
import urllib.request
from types import SimpleNamespace

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import ClientMixin, grants
from authlib.oauth2.rfc6749.models import AuthorizationCodeMixin, TokenMixin
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc7662 import IntrospectionEndpoint
from authlib.oauth2.rfc9207 import IssuerParameter
from flask import Flask, jsonify
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from werkzeug.serving import make_server

CLIENTS: dict[str, "Client"] = {}
CODES: dict[str, "Code"] = {}
TOKENS: list["Token"] = []
PERSON = SimpleNamespace(get_user_id=lambda: "ada")
RESOURCE_SERVER = ("resource", "resource-server-secret")
METHODS = ("none", "client_secret_basic", "client_secret_post")


class Client(ClientMixin):
    def __init__(self, client_id, client_secret, **metadata):
        self.client_id = client_id
        self.client_secret = client_secret
        self.metadata = metadata

    def get_client_id(self):
        return self.client_id

    def get_default_redirect_uri(self):
        return self.metadata["redirect_uris"][0]

    def get_allowed_scope(self, scope):
        allowed = set(self.metadata.get("scope", "files:read files:write").split())
        return " ".join(s for s in (scope or "").split() if s in allowed)

    def check_redirect_uri(self, redirect_uri):
        return redirect_uri in self.metadata.get("redirect_uris", ())

    def check_client_secret(self, client_secret):
        return secrets.compare_digest(self.client_secret, client_secret)

    def check_endpoint_auth_method(self, method, endpoint):
        return method == self.metadata.get("token_endpoint_auth_method", "client_secret_basic")

    def check_response_type(self, response_type):
        return response_type in self.metadata.get("response_types", ["code"])

    def check_grant_type(self, grant_type):
        return grant_type in self.metadata.get("grant_types", ["authorization_code"])


class Code(AuthorizationCodeMixin):
    def __init__(self, **values):
        self.__dict__.update(values)

    def get_redirect_uri(self):
        return self.redirect_uri

    def get_scope(self):
        return self.scope


class Token(TokenMixin):
    def __init__(self, client_id, **values):
        self.client_id = client_id
        self.revoked = False
        self.issued_at = time.time()
        self.refresh_token = None
        self.__dict__.update(values)

    def check_client(self, client):
        return self.client_id == client.get_client_id()

    def get_scope(self):
        return self.scope

    def get_expires_in(self):
        return self.expires_in

    def is_expired(self):
        return time.time() > self.issued_at + self.expires_in

    def is_revoked(self):
        return self.revoked

    def get_user(self):
        return PERSON

    def get_client(self):
        return CLIENTS[self.client_id]


class CodeGrant(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = METHODS

    def save_authorization_code(self, code, request):
        data = request.payload.data
        CODES[code] = Code(
            code=code,
            client_id=request.client.client_id,
            redirect_uri=request.payload.redirect_uri,
            scope=request.payload.scope,
            code_challenge=data.get("code_challenge"),
            code_challenge_method=data.get("code_challenge_method"),
            resource=data.get("resource"),
        )
        return CODES[code]

    def query_authorization_code(self, code, client):
        found = CODES.get(code)
        return found if found is not None and found.client_id == client.client_id else None

    def delete_authorization_code(self, authorization_code):
        del CODES[authorization_code.code]

    def authenticate_user(self, authorization_code):
        return PERSON


class RefreshGrant(grants.RefreshTokenGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = METHODS
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token):
        return next((t for t in TOKENS if t.refresh_token == refresh_token and not t.revoked), None)

    def authenticate_user(self, refresh_token):
        return PERSON

    def revoke_old_credential(self, refresh_token):
        refresh_token.revoked = True


class Registration(ClientRegistrationEndpoint):
    def authenticate_token(self, request):
        return SimpleNamespace()  # everyone may register

    def save_client(self, client_info, client_metadata, request):
        client = Client(client_info["client_id"], client_info.get("client_secret", ""), **client_metadata)
        client.client_info = client_info
        client.client_metadata = client_metadata
        CLIENTS[client.client_id] = client
        return client

    def get_server_metadata(self):
        return {}


class Revocation(RevocationEndpoint):
    CLIENT_AUTH_METHODS = METHODS

    def query_token(self, token_string, token_type_hint):
        return next((t for t in TOKENS if token_string in (t.access_token, t.refresh_token)), None)

    def revoke_token(self, token, request):
        token.revoked = True


class Introspection(IntrospectionEndpoint):
    def query_token(self, token_string, token_type_hint):
        return next((t for t in TOKENS if t.access_token == token_string), None)

    def check_permission(self, token, client, request):
        return client.client_id == RESOURCE_SERVER[0]

    def introspect_token(self, token):
        active = not token.is_expired() and not token.revoked
        return {"active": active, "scope": token.scope, "client_id": token.client_id, "aud": token.resource}


class Issuer(IssuerParameter):
    def __init__(self, issuer):
        self.issuer = issuer

    def get_issuer(self):
        return self.issuer


def authorization_server(issuer: str, path: str) -> Flask:
    app = Flask(__name__)
    app.config["OAUTH2_TOKEN_EXPIRES_IN"] = {"authorization_code": 3600, "refresh_token": 3600}
    app.config["OAUTH2_REFRESH_TOKEN_GENERATOR"] = True

    def save_token(token, asked):
        data = asked.payload.data
        known = {key: token[key] for key in ("access_token", "refresh_token", "expires_in", "scope") if key in token}
        TOKENS.append(Token(asked.client.client_id, resource=data.get("resource"), **known))

    server = AuthorizationServer(app, query_client=CLIENTS.get, save_token=save_token)
    server.register_grant(CodeGrant, [CodeChallenge(required=True)])
    server.register_grant(RefreshGrant)
    server.register_endpoint(Registration)
    server.register_endpoint(Revocation)
    server.register_endpoint(Introspection)
    server.register_extension(Issuer(issuer))
    CLIENTS[RESOURCE_SERVER[0]] = Client(*RESOURCE_SERVER, token_endpoint_auth_method="client_secret_basic")

    @app.get(f"{path}/.well-known/openid-configuration")
    def metadata():
        return jsonify(
            issuer=issuer,
            authorization_endpoint=f"{issuer}/authorize",
            token_endpoint=f"{issuer}/token",
            registration_endpoint=f"{issuer}/register",
            revocation_endpoint=f"{issuer}/revoke",
            response_types_supported=["code"],
            scopes_supported=["files:read", "files:write"],
            code_challenge_methods_supported=["S256"],
            token_endpoint_auth_methods_supported=["client_secret_basic"],
            authorization_response_iss_parameter_supported=True,
        )

    app.get(f"{path}/authorize")(
        lambda: server.create_authorization_response(grant=grant_of(server), grant_user=PERSON)
    )
    app.post(f"{path}/token")(server.create_token_response)
    for name in ("client_registration", "revocation", "introspection"):
        where = {"client_registration": "register", "revocation": "revoke", "introspection": "introspect"}[name]
        app.post(f"{path}/{where}", endpoint=where)(lambda name=name: server.create_endpoint_response(name))
    return app


def grant_of(server):
    return server.get_consent_grant(end_user=PERSON)


class Introspecting:
    """Asks the authorization server about each token."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def verify_token(self, token):
        found = await asyncio.to_thread(self._ask, token)
        if not found.get("active"):
            return None
        return AccessToken(
            token=token, client_id=found["client_id"], scopes=found["scope"].split(), resource=found["aud"]
        )

    def _ask(self, token):
        body = urllib.parse.urlencode({"token": token}).encode()
        basic = base64.b64encode(":".join(RESOURCE_SERVER).encode()).decode()
        asked = urllib.request.Request(self.url, body, {"Authorization": f"Basic {basic}"})  # noqa: S310 - our own http URL
        with urllib.request.urlopen(asked, timeout=5) as reply:  # noqa: S310 - our own http URL
            return json.load(reply)


def main() -> None:
    ports = [int(argument) for argument in sys.argv[1:3]]
    path = "/tenant1"
    issuer = f"http://127.0.0.1:{ports[0]}{path}"
    flask = make_server("127.0.0.1", ports[0], authorization_server(issuer, path), threaded=True)
    threading.Thread(target=flask.serve_forever, daemon=True).start()
    server = MCPServer(
        "protected elsewhere",
        token_verifier=Introspecting(f"{issuer}/introspect"),
        auth=AuthSettings(
            issuer_url=issuer,
            resource_server_url=f"http://127.0.0.1:{ports[1]}/mcp",
            required_scopes=["files:read"],
            validate_token_resource=True,
        ),
    )

    @server.tool()
    def whoami() -> str:
        """Say that the call was let in."""
        return "someone with a token"

    server.run("streamable-http", host="127.0.0.1", port=ports[1])


if __name__ == "__main__":
    main()
