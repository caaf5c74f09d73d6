"""What the conformance client shows to a server that wants authorization: one `OAuth` for each scenario.

Every user of these programs is the suite itself, so the authorization page is fetched instead of shown.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from mcprelay import Client
from mcprelay.auth import (
    Auth,
    ClientCredentials,
    Headless,
    IdentityAssertion,
    JwtBearer,
    OAuth,
    Registered,
)
from mcprelay.client.http import HttpSender

DOCUMENT = "https://conformance-test.local/client-metadata.json"


def credentials(scenario: str, context: dict[str, Any]) -> Auth:
    """What `auth=` is in this scenario."""
    settings: dict[str, Any] = {"interaction": Headless(HttpSender()), "client": registered(context)}
    if scenario == "auth/basic-cimd":
        settings["client_document"] = DOCUMENT
    elif scenario.startswith("auth/client-credentials-"):
        settings["grant"] = ClientCredentials()
    elif scenario == "auth/wif-jwt-bearer":
        settings["grant"] = JwtBearer(assertion=context["valid_jwt"])
    elif scenario == "auth/enterprise-managed-authorization":
        settings["grant"] = IdentityAssertion(
            assertion=context["idp_id_token"],
            token_endpoint=context["idp_token_endpoint"],
            client_id=context["idp_client_id"],
        )
    return OAuth(**settings)


def registered(context: dict[str, Any]) -> Registered | None:
    """The credentials that the suite gives, in the scenarios where it does."""
    if "client_id" not in context:
        return None
    return Registered(
        client_id=context["client_id"],
        client_secret=context.get("client_secret"),
        private_key=context.get("private_key_pem"),
        algorithm=context.get("signing_algorithm"),
        issuer=context.get("issuer"),
    )


async def call_first_tool(client: Client) -> None:
    """What every scenario does once it may."""
    tools = await client.list_tools()
    await client.call_tool(tools[0].name, {})


async def call_twice(client: Client) -> None:
    """Call again after the authorization server has changed behind the client's back."""
    await call_first_tool(client)
    await client.call_tool("test-tool", {})


def run(scenario: str) -> Callable[[Client], Awaitable[None]]:
    """What is done in this scenario."""
    return call_twice if scenario == "auth/authorization-server-migration" else call_first_tool
