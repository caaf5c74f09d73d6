import json
from urllib.parse import urlsplit

import jwt
import pytest

from mcprelay.auth import MemoryStore
from mcprelay.auth.address import parse
from mcprelay.auth.discovery import ResourceMetadata, ServerMetadata
from mcprelay.auth.dpop import BoundKey, algorithms, nonce_from, nonce_in, proof, wanted
from mcprelay.auth.jws import digest
from mcprelay.errors import AuthorizationRequired
from tests.auth.world import ISSUER, MCP, Issuer, Resource, answer, call, claims, form, header, world

KEY = BoundKey.new(None)


def verified(text: str) -> tuple[dict, dict]:
    head = jwt.get_unverified_header(text)
    public = jwt.PyJWK({**head["jwk"], "alg": head["alg"]})
    return head, jwt.decode(text, public, algorithms=[head["alg"]], options={"verify_iat": False})


class BoundIssuer(Issuer):
    """Binds tokens to the key of the proof, and wants its nonce to be told when it has one."""

    def __init__(self, **metadata):
        super().__init__(**{"dpop_signing_alg_values_supported": ["ES256"], **metadata})
        self.nonce: str | None = None
        self.proofs: list[str] = []

    def token(self, request):
        text = header(request, "dpop")
        if text is None:
            return super().token(request)
        head, body = verified(text)
        assert head["typ"] == "dpop+jwt"
        assert "d" not in head["jwk"]
        assert (body["htm"], body["htu"]) == ("POST", f"{ISSUER}/token")
        assert "ath" not in body
        assert text not in self.proofs
        self.proofs.append(text)
        if self.nonce is not None and body.get("nonce") != self.nonce:
            return answer(400, {"error": "use_dpop_nonce"}, dpop_nonce=self.nonce)
        self.grants["token_type"] = "DPoP"
        return super().token(request)


class BoundResource(Resource):
    """Takes bound tokens only, with a fresh proof, and wants its nonce to be told when it has one."""

    def __init__(self, **metadata):
        super().__init__(**metadata)
        self.challenge = f'DPoP algs="ES256", resource_metadata="{self.origin}{self.places[0]}"'
        self.nonce: str | None = None
        self.next_nonce: str | None = None
        self.seen: set[str] = set()

    def __call__(self, request):
        if urlsplit(request.url).path != self.path or header(request, "authorization") is None:
            return super().__call__(request)
        scheme, _, token = header(request, "authorization").partition(" ")
        assert scheme == "DPoP"
        _, body = verified(header(request, "dpop"))
        assert (body["htm"], body["htu"]) == (request.method, self.url)
        assert body["ath"] == digest(token)
        assert body["jti"] not in self.seen
        self.seen.add(body["jti"])
        if self.nonce is not None and body.get("nonce") != self.nonce:
            return answer(401, None, www_authenticate='DPoP error="use_dpop_nonce"', dpop_nonce=self.nonce)
        found = super().__call__(request)
        return answer(found.status, {}, dpop_nonce=self.next_nonce) if self.next_nonce else found


def test_a_proof_says_which_request_it_is_for_and_no_query_of_it():
    text = proof(
        KEY.signing(),
        method="GET",
        place=parse("https://x.example/mcp?session=1"),
        now=1000.9,
        unique="u",
        nonce="n",
        access_token="Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU",
    )
    assert claims(text) == {
        "jti": "u",
        "htm": "GET",
        "htu": "https://x.example/mcp",
        "iat": 1000,
        "ath": "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo",
        "nonce": "n",
    }
    assert nonce_in(text) == "n"
    bare = proof(KEY.signing(), method="GET", place=parse("https://x.example"), now=0, unique="u")
    assert claims(bare)["htu"] == "https://x.example/"
    assert nonce_in(bare) is None


@pytest.mark.parametrize("text", ["", "a.b.c", "....", "é.é.é", "a." + "=" * 5])
def test_a_text_that_is_no_proof_has_no_nonce(text):
    assert nonce_in(text) is None


@pytest.mark.parametrize("nonce", ["", "a b", "a\r\nb", "é", "x" * 2000])
def test_a_nonce_that_no_proof_can_carry_is_passed_over(nonce):
    assert nonce_from({"dpop-nonce": nonce}) is None


def resource(**more) -> ResourceMetadata:
    return ResourceMetadata(resource=MCP, authorization_servers=(ISSUER,), **more)


ABLE = ServerMetadata(issuer=ISSUER, dpop_signing_alg_values_supported=("ES256",))
UNABLE = ServerMetadata(issuer=ISSUER)


@pytest.mark.parametrize(
    ("schemes", "named", "server", "decision"),
    [
        ([], {}, ABLE, False),
        (["bearer"], {}, ABLE, False),
        (["bearer", "dpop"], {}, ABLE, True),
        (["bearer", "dpop"], {}, UNABLE, False),
        (["dpop"], {}, UNABLE, True),
        (["bearer"], {"dpop_signing_alg_values_supported": ("ES256",)}, ABLE, True),
        (["bearer"], {"dpop_signing_alg_values_supported": ("ES256",)}, UNABLE, False),
        (["bearer"], {"dpop_bound_access_tokens_required": True}, UNABLE, True),
        (["bearer"], {"dpop_bound_access_tokens_required": False}, ABLE, False),
    ],
)
def test_bound_tokens_are_asked_for_where_both_servers_take_them(schemes, named, server, decision):
    assert wanted("auto", schemes=schemes, resource=resource(**named), server=server) is decision
    assert wanted("always", schemes=schemes, resource=None, server=server)
    assert not wanted("never", schemes=schemes, resource=None, server=server)


def test_the_algorithm_is_one_that_both_servers_verify():
    named = resource(dpop_signing_alg_values_supported=("EdDSA", "ES384"))
    server = ServerMetadata(issuer=ISSUER, dpop_signing_alg_values_supported=("ES256", "ES384"))
    assert algorithms(resource=named, server=server) == ("ES384",)
    assert algorithms(resource=None, server=UNABLE) is None
    assert BoundKey.new(("ES384",)).signing().algorithms == ("ES384",)


# ------------------------------------------------------------------------------------------------------------ in a flow


async def test_a_bound_token_is_got_and_shown_with_a_fresh_proof_each_time(make):
    issuer = BoundIssuer()
    network, server, _ = world(BoundResource(), issuer)
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    await call(credentials, network, method="GET")
    assert len(server.seen) == 2
    assert issuer.registrations[0]["dpop_bound_access_tokens"] is True
    key = verified(issuer.proofs[0])[0]["jwk"]
    assert header(server.calls[-1], "dpop") is not None
    assert verified(header(server.calls[-1], "dpop"))[0]["jwk"] == key
    assert issuer.questions[0]["dpop_jkt"]


async def test_nonces_of_both_servers_are_told(make):
    issuer = BoundIssuer()
    issuer.nonce = "as-1"
    server = BoundResource()
    server.nonce = "rs-1"
    network, _, _ = world(server, issuer)
    credentials = make(network).bind(MCP, sender=network)
    assert (await call(credentials, network)).attempts == 3
    assert [claims(text).get("nonce") for text in issuer.proofs] == [None, "as-1"]
    assert (await call(credentials, network)).attempts == 1


async def test_a_nonce_that_came_with_a_success_is_used_next(make):
    server = BoundResource()
    network, _, _ = world(server, BoundIssuer())
    credentials = make(network).bind(MCP, sender=network)
    server.next_nonce = "rs-2"
    await call(credentials, network)
    server.nonce = "rs-2"
    server.next_nonce = None
    assert (await call(credentials, network)).attempts == 1


async def test_a_server_that_wants_another_nonce_every_time_is_left(make):
    server = BoundResource()
    network, _, _ = world(server, BoundIssuer())
    credentials = make(network).bind(MCP, sender=network)
    await call(credentials, network)
    count = iter(range(100))

    def insatiable(request):
        found = server(request)
        if found.status == 200 and header(request, "authorization"):
            return answer(401, None, www_authenticate='DPoP error="use_dpop_nonce"', dpop_nonce=f"n{next(count)}")
        return found

    network.add(server.origin, insatiable)
    with pytest.raises(AuthorizationRequired, match="attempts=3"):
        await call(credentials, network)


async def test_a_token_endpoint_that_wants_another_nonce_every_time_is_left(make):
    issuer = BoundIssuer()
    network, _, _ = world(BoundResource(), issuer)
    issuer.refuse = [answer(400, {"error": "use_dpop_nonce"}, dpop_nonce=f"n{n}") for n in range(9)]
    with pytest.raises(AuthorizationRequired, match="use_dpop_nonce"):
        await call(make(network).bind(MCP, sender=network), network)
    assert len(issuer.token_requests) == 2


async def test_the_key_survives_a_restart_and_refreshes(make, clock):
    issuer = BoundIssuer()
    network, _server, _ = world(BoundResource(), issuer)
    store = MemoryStore()
    await call(make(network, store=store).bind(MCP, sender=network), network)
    clock.now += 4000
    await call(make(network, store=store).bind(MCP, sender=network), network)
    assert form(network.sent_to("/token")[-1])["grant_type"] == "refresh_token"
    keys = {json.dumps(verified(text)[0]["jwk"]) for text in issuer.proofs}
    assert len(keys) == 1
    assert len(issuer.questions) == 1


async def test_an_issuer_that_gives_a_bearer_token_all_the_same_is_taken_at_its_word(make):
    issuer = Issuer(dpop_signing_alg_values_supported=["ES256"])
    network, server, _ = world(Resource(dpop_signing_alg_values_supported=["ES256"]), issuer)
    assert (await call(make(network).bind(MCP, sender=network), network)).status == 200
    assert header(server.calls[-1], "dpop") is None
    assert header(server.calls[-1], "authorization") == "Bearer token-1"


async def test_a_bearer_token_is_refused_where_bound_ones_are_demanded(make):
    network, _, _ = world()
    with pytest.raises(AuthorizationRequired, match='a bearer token came back, and dpop="always" was set'):
        await call(make(network, dpop="always").bind(MCP, sender=network), network)


async def test_a_bound_token_without_a_key_is_refused(make):
    issuer = Issuer()
    issuer.grants["token_type"] = "DPoP"
    network, _, _ = world(None, issuer)
    with pytest.raises(AuthorizationRequired, match="no key was shown"):
        await call(make(network).bind(MCP, sender=network), network)


async def test_algorithms_that_nobody_here_knows_are_an_error_that_names_them(make):
    network, _, _ = world(BoundResource(), BoundIssuer(dpop_signing_alg_values_supported=["ES256K"]))
    with pytest.raises(AuthorizationRequired, match="no algorithm of ES256K is known"):
        await call(make(network).bind(MCP, sender=network), network)
