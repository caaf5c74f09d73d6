"""Whatever servers answer, a call ends: with an answer or with an error that says what happened."""

import asyncio
import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprelay.auth import Headless, OAuth
from mcprelay.auth.discovery import ResourceMetadata, ServerMetadata
from mcprelay.auth.registration import Registration
from mcprelay.errors import AuthorizationRequired
from tests.auth.world import ISSUER, MCP, Issuer, Reply, Resource, World, call, public

HEADERS = {
    "www-authenticate": st.sampled_from(
        [
            "Bearer",
            'Bearer error="insufficient_scope", scope="a"',
            'Bearer error="invalid_token", resource_metadata="https://mcp.example.com/x"',
            'Bearer resource_metadata="http://169.254.169.254/latest"',
            'Bearer resource_metadata="javascript:alert(1)"',
            'DPoP error="use_dpop_nonce"',
            'DPoP algs="ES256"',
            "Basic realm=x",
            "%%% \x00 ,,,=",
        ]
    ),
    "dpop-nonce": st.sampled_from(["n", "m", "a b", ""]),
    "location": st.sampled_from(["/", "http://127.0.0.1:33418/callback?code=1", "https://evil.example/", "::"]),
}
URLS = [MCP, ISSUER, f"{ISSUER}/token", f"{ISSUER}/authorize", "https://evil.example", "http://as.example.com"]
WORDS = ["", "x", "a b", "\u202e", "Bearer", "DPoP", "use_dpop_nonce", "invalid_grant", "temporarily_unavailable"]
VALUES = st.sampled_from([None, 0, -1, True, [], {}, ["S256"], [ISSUER], *URLS, *WORDS])
TOKEN_MEMBERS = ["access_token", "token_type", "expires_in", "refresh_token", "scope", "error", "error_description"]
MEMBERS = st.sampled_from(
    [
        *ResourceMetadata.__struct_fields__,
        *ServerMetadata.__struct_fields__,
        *Registration.__struct_fields__,
        *TOKEN_MEMBERS,
    ]
)
BODIES = st.dictionaries(MEMBERS, VALUES, max_size=5).map(lambda value: json.dumps(value).encode()) | st.binary(
    max_size=20
)
REPLIES = st.builds(
    Reply,
    st.sampled_from([200, 201, 204, 302, 400, 401, 403, 404, 418, 429, 500]),
    st.fixed_dictionaries({}, optional=HEADERS),
    BODIES,
)


@given(st.dictionaries(st.integers(0, 15), REPLIES, max_size=6), st.integers(0, 3))
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_call_ends_with_an_answer_or_an_error_of_ours(wrong: dict[int, Reply], repeats: int):
    """Replies at some places of the conversation are replaced by others."""
    resource, issuer = Resource(), Issuer(dpop_signing_alg_values_supported=["ES256"])
    count = 0
    said: list[str] = []

    def serve(request):
        nonlocal count
        count += 1
        if count - 1 in wrong:
            return wrong[count - 1]
        return resource(request) if request.url.startswith(resource.origin) else issuer(request)

    network = World()
    network.add(resource.origin, serve)
    network.add(issuer.origin, serve)

    async def calls() -> None:
        auth = OAuth(interaction=Headless(network), resolver=public)
        credentials = auth.bind(MCP, sender=network)
        for _ in range(1 + repeats):
            try:
                await call(credentials, network)
            except AuthorizationRequired as error:
                said.append(str(error))

    asyncio.run(calls())
    assert all(text.endswith(".") and "token-1" not in text for text in said)
    assert count < 40 * (1 + repeats)
    assert network.sent_to("evil.example") == []
    assert network.sent_to("169.254") == []
