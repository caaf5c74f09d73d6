"""Servers, disks and neighbors that misbehave, over real sockets."""

import asyncio
import base64
import contextlib
import gzip
import json
import logging
import os
import sys
import time
import traceback
from pathlib import Path

import pytest

import mcprelay
from mcprelay import Client
from mcprelay.auth import FileStore, Headless, MemoryStore, OAuth, Refuse, StaticToken
from mcprelay.auth.login import login, logout, stored
from mcprelay.auth.store import Lock
from mcprelay.errors import AuthorizationRequired, ConfigurationError, HttpError
from tests.auth.site import METADATA, SERVER_METADATA, Asked, Site, reply, sending, site


class Later:
    """The real time, moved on by `shift` seconds."""

    shift = 0.0

    def time(self) -> float:
        return time.time() + self.shift

    def monotonic(self) -> float:
        return time.monotonic() + self.shift


async def listing(site: Site, **settings) -> OAuth:
    """List the tools of a site, as somebody for whom the login page agrees."""
    async with sending() as sender:
        auth = OAuth(**{"interaction": Headless(sender), "request_timeout": 5.0, **settings})
        async with Client(site.url, auth=auth) as client:
            await client.list_tools()
        return auth


def chain(error: BaseException | None) -> str:
    """All that an error and what led to it say."""
    said = ""
    while error is not None:
        said += f"{error} {error!r} {vars(error)} "
        error = error.__cause__ or error.__context__
    return said


# ---------------------------------------------------------------------------------------------------- token endpoint


@pytest.mark.parametrize(
    "lifetime",
    ["-5", "1e99", '"abc"', "[]", "true", "null", "1" + "0" * 400, '"1' + "0" * 400 + '"', '"Infinity"', '"NaN"'],
)
async def test_a_lifetime_that_makes_no_sense_costs_nothing(lifetime):
    async with site() as here:
        token = f'{{"access_token": "access-1", "token_type": "bearer", "expires_in": {lifetime}}}'
        here.over["/token"] = reply(200, token.encode())
        await listing(here)
        assert len(here.asked("/token")) == 1
        assert here.log[-1].token == "access-1"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (reply(200, b"<html>"), "answered no JSON object"),
        (reply(200, b'{"access_token":' + b"[" * 50_000 + b"]" * 50_000 + b"}"), "answered no JSON object"),
        (reply(200, {"error": "invalid_grant", "error_description": "\x1b[2J c0de-of-the-person"}), "invalid_grant"),
        (reply(200, b'"' + b"x" * 1_000_000 + b'"'), "answer_bytes=262144"),
        (reply(200, gzip.compress(b"x" * 50_000_000), content_encoding="gzip"), "answer_bytes=262144"),
        (reply(307, location="http://u:p4ss@169.254.169.254/x#access_token=t0k3n"), "a redirect to http://169.254.169.254/x"),
        (reply(200, {"access_token": "a\r\nX-Evil: 1", "token_type": "bearer"}), "no header can carry"),
        (reply(200, {"access_token": "a", "token_type": "c0de-of-the-person"}), "only Bearer and DPoP"),
    ],
)  # fmt: skip
async def test_whatever_a_token_endpoint_answers_the_error_says_what_came_back_and_no_secret(answer, sentence):
    async with site() as here:
        here.over["/token"] = answer
        with pytest.raises(AuthorizationRequired) as caught:
            await listing(here)
    said = chain(caught.value)
    assert f"Token request failed: {here.origin}/token answered" in str(caught.value)
    assert sentence in str(caught.value)
    assert not any(secret in said for secret in ("c0de-of-the-person", "p4ss", "t0k3n", "\x1b"))


async def test_a_token_endpoint_that_drips_is_waited_for_no_longer_than_was_set():
    async with site() as here:
        asleep = asyncio.Event()
        here.over["/token"] = lambda _: asleep.wait()
        with pytest.raises(AuthorizationRequired, match=r"no answer in request_timeout=0\.2 seconds"):
            await listing(here, request_timeout=0.2)


@pytest.mark.parametrize(
    "portal", [reply(403, b"<html>"), reply(200, b"<html>"), reply(302, location="https://portal.example")]
)
async def test_who_stands_in_the_way_of_a_refresh_does_not_cost_the_refresh_token(portal):
    clock, store = Later(), MemoryStore()
    async with site() as here:
        await listing(here, store=store)
        here.over["/token"] = portal
        here.accepts = lambda token: token == "access-2"
        with pytest.raises(AuthorizationRequired):
            await listing(here, store=store, clock=clock, interaction=Refuse())
        here.over.clear()
        await listing(here, store=store, clock=clock, interaction=Refuse())
        assert here.asked("/token")[-1].form["refresh_token"] == "refresh-1"


async def test_a_refresh_token_that_the_server_has_judged_is_not_shown_again():
    store = MemoryStore()
    async with site() as here:
        await listing(here, store=store)
        here.over["/token"] = reply(400, {"error": "invalid_grant"})
        here.accepts = lambda token: False
        for _ in range(3):
            with pytest.raises(AuthorizationRequired):
                await listing(here, store=store, interaction=Refuse())
        assert [each.form["grant_type"] for each in here.asked("/token")] == ["authorization_code", "refresh_token"]


# ------------------------------------------------------------------------------------------- metadata and registration


@pytest.mark.parametrize("other", ["{}/", "{}:80", "{}/.", "{}?", "HTTP{}"])
async def test_an_issuer_that_is_written_otherwise_is_another(other):
    async with site() as here:
        here.metadata["issuer"] = other.format(here.origin)
        with pytest.raises(AuthorizationRequired, match="is that of the issuer"):
            await listing(here)
        assert not here.asked("/register")


ADDRESSES = [
    "https://169.254.169.254",
    "http://169.254.169.254",
    "https://[::ffff:169.254.169.254]",
    "https://[::ffff:0:169.254.169.254]",
    "https://[64:ff9b::a9fe:a9fe]",
    "https://2852039166",
    "https://0xa9fea9fe",
    "https://0251.0376.0251.0376",
    "https://169.254.43518",
    "https://169%2e254%2e169%2e254",
    "https://metadata.google.internal.",
    "https://10.0.0.1",
    "https://[fe80::1%25eth0]",
    "https://u:p@169.254.169.254",
    "file:///etc/passwd",
]


@pytest.mark.parametrize("address", ADDRESSES)
async def test_an_address_inside_is_refused_however_it_is_written_and_wherever_it_stands(address):
    async with site() as here:
        for place in ("challenge", "issuer", "authorization", "token", "registration"):
            here.challenge, here.metadata, here.resource = None, {}, {}
            if place == "challenge":
                here.challenge = f'Bearer resource_metadata="{address}/x"'
            elif place == "issuer":
                here.resource = {"authorization_servers": [address]}
            else:
                here.metadata = {f"{place}_endpoint": f"{address}/x"}
            with pytest.raises(AuthorizationRequired) as caught:
                await listing(here)
            assert "could not be reached" not in str(caught.value)
            assert "insecure_hosts" not in str(caught.value)


@pytest.mark.parametrize("addresses", [["93.184.216.34", "127.0.0.1", "10.0.0.1"], ["127.0.0.1"]])
async def test_a_name_that_leads_here_opens_nothing_here(addresses):
    """A server that has this machine among its addresses may not send us to what listens on this machine."""

    async def resolver(host: str, port: int) -> list[str]:
        return {"mcp.evil.example": addresses}.get(host, [host])

    async with sending() as sender:
        credentials = OAuth(resolver=resolver, interaction=Refuse()).bound(
            "https://mcp.evil.example/mcp", sender=sender
        )
        for inner in ("http://127.0.0.1:1/x", "https://10.0.0.1/x"):
            with pytest.raises(mcprelay.MCPRelayError, match="requests to such places are refused"):
                await credentials._scout._courier.get(inner, step="test")


async def test_a_lookup_that_never_ends_is_given_up():
    async def resolver(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        raise AssertionError

    async with site() as here:
        here.resource = {"authorization_servers": ["https://as.example.com"]}
        with pytest.raises(AuthorizationRequired, match=r"could not be looked up in request_timeout=0\.1 seconds"):
            await listing(here, resolver=resolver, request_timeout=0.1)


@pytest.mark.parametrize("metadata", [{"registration_endpoint": ""}, {"revocation_endpoint": "not a url"}])
async def test_an_endpoint_that_is_not_needed_may_be_nonsense(metadata):
    async with site() as here:
        here.metadata = metadata
        here.metadata["client_id_metadata_document_supported"] = True
        await listing(here, client_document="https://app.example.com/client.json")
        assert here.asked("/authorize")[0].query["client_id"] == "https://app.example.com/client.json"


@pytest.mark.parametrize(
    ("registered", "sentence"),
    [
        ({"client_id": None}, "gave no client"),
        ({"client_id": ""}, "without an identifier"),
        ({"redirect_uris": ["https://evil.example/callback"]}, "is sent back to https://evil.example/callback"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, "which was not asked for"),
    ],
)
async def test_a_registration_of_another_client_is_refused_before_a_person_is_asked(registered, sentence):
    async with site() as here:
        here.registered = registered
        with pytest.raises(AuthorizationRequired, match=f"Client registration failed: .*{sentence}"):
            await listing(here)
        assert not here.asked("/authorize")


@pytest.mark.parametrize(
    "registered",
    [
        {"client_secret": "s3cret-of-it", "client_secret_expires_at": "0"},
        {"client_secret_expires_at": "soon"},
        {"redirect_uris": ["http://127.0.0.1/callback"]},
        {"redirect_uris": []},
        {"redirect_uris": None},
    ],
)
async def test_a_registration_that_is_written_loosely_is_taken(registered):
    async with site() as here:
        here.registered = registered
        await listing(here)
        assert here.asked("/token")[0].form["client_id"] == "client"


@pytest.mark.parametrize(
    "challenge",
    [
        'Basic realm="x", Bearer resource_metadata="{}"',
        'Bearer realm="x", Bearer resource_metadata="{}"',
        'Bearer resource_metadata="{}',
        "Bearer resource_metadata={}",
        'Bearer scope="a\\"b c", resource_metadata="{}", resource_metadata="https://evil.example"',
    ],
)
async def test_a_challenge_is_understood_however_badly_it_is_written(challenge):
    async with site() as here:
        document = {"resource": here.url, "authorization_servers": [here.origin]}
        here.over["/named"] = reply(200, document)
        here.over[METADATA] = reply(404)
        here.challenge = challenge.replace("{}", here.origin + "/named")
        await listing(here)
        assert here.asked("/named")


@pytest.mark.parametrize(
    "challenge",
    [
        '=,=,", Bearer',
        "Bearer " + ", ".join(f'a{number}="{number}"' for number in range(3000)),
        'Bearer error="' + "x" * 30_000 + '"',
        "Bearer" + " " * 30_000 + "=",
    ],
)
async def test_a_challenge_that_says_nothing_leads_to_the_well_known_place(challenge):
    async with site() as here:
        here.challenge = challenge
        await listing(here)
        assert here.asked(METADATA)


# ------------------------------------------------------------------------------------------------------- tokens stay


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_of_the_server_takes_no_token_along(status):
    async with site() as other, site() as here:
        here.over["/mcp"] = reply(status, location=other.url)
        with pytest.raises(HttpError, match="redirects are not followed"):
            async with Client(here.url, auth=StaticToken("s3cret-token")) as client:
                await client.list_tools()
        assert not other.log


async def test_a_server_that_quotes_the_token_does_not_get_it_into_an_error_or_a_log(caplog):
    caplog.set_level(logging.DEBUG)

    def quoting(asked: Asked) -> bytes:
        quoted = asked.headers.get("authorization", "")
        return reply(401, www_authenticate=f'Bearer error="{quoted}", scope="{quoted}", error_description="{quoted}"')

    async with site() as here:
        here.over["/mcp"] = quoting
        with pytest.raises(AuthorizationRequired) as given:
            async with Client(here.url, auth="access-s3cret") as client:
                await client.list_tools()
        with pytest.raises(AuthorizationRequired) as got:
            await listing(here)
    assert "[redacted]" in str(given.value)
    assert given.value.challenge.params["error_description"] == "Bearer [redacted]"
    for said in (chain(given.value), chain(got.value), caplog.text):
        assert "access-" not in said
        assert "refresh-" not in said


@pytest.mark.parametrize("answer", [b"", reply(500), reply(400, {"error": "invalid_grant"}), reply(200, b"<html>")])
async def test_no_secret_is_among_the_variables_of_a_traceback(answer):
    clock, store = Later(), MemoryStore()
    async with site() as here:
        here.registered = {"client_secret": "s3cret-of-it", "token_endpoint_auth_method": "client_secret_basic"}
        await listing(here, store=store)
        here.over["/token"] = answer
        here.accepts = lambda token: False
        for interaction in ({"interaction": Refuse()}, {}):
            with pytest.raises(AuthorizationRequired) as caught:
                await listing(here, store=store, clock=clock, **interaction)
            told = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
            assert "token" in told
            assert not leaked(told)


def leaked(told: str) -> list[str]:
    plain = ["access-1", "refresh-1", "s3cret-of-it", "c0de-of-the-person"]
    encoded = [base64.b64encode(f"client:{secret}".encode()).decode().rstrip("=") for secret in plain]
    return [secret for secret in (*plain, *encoded) if secret in told]


# ------------------------------------------------------------------------------------------- several at the same time


async def test_many_calls_with_an_expired_or_a_withdrawn_token_make_one_refresh_each_time():
    clock = Later()
    async with site() as here, sending() as sender:
        async with Client(here.url, auth=OAuth(interaction=Headless(sender), clock=clock)) as client:
            await client.list_tools()
            clock.shift = 4000.0
            await asyncio.gather(*(client.call_tool("x") for _ in range(20)))
            assert here.issued == 2
            here.accepts = lambda token: token == "access-3"
            await asyncio.gather(*(client.call_tool("x") for _ in range(20)))
            assert here.issued == 3
            clock.shift = -1_000_000.0  # a clock that is set back renews nothing and breaks nothing
            await client.call_tool("x")
            assert here.issued == 3


@pytest.mark.parametrize("step", [METADATA, SERVER_METADATA, "/register", "/authorize", "/token"])
async def test_a_call_that_is_cancelled_in_any_step_leaves_the_login_to_the_next_one(step):
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def held(asked: Asked) -> bytes:
        reached.set()
        await go_on.wait()
        return here.usual(asked)

    async with site() as here, sending() as sender:
        here.over[step] = held
        async with Client(here.url, auth=OAuth(interaction=Headless(sender))) as client:
            first = asyncio.ensure_future(client.list_tools())
            await reached.wait()
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            go_on.set()
            await client.list_tools()
        assert len(here.asked("/authorize")) == 1


RENEWING = """
import asyncio, sys, time
from mcprelay import Client
from mcprelay.auth import FileStore, OAuth, Refuse

class Later:
    monotonic = staticmethod(time.monotonic)
    time = staticmethod(lambda: time.time() + 4000)

async def main():
    auth = OAuth(interaction=Refuse(), store=FileStore(sys.argv[2]), clock=Later())
    async with Client(sys.argv[1], auth=auth) as client:
        await client.list_tools()

asyncio.run(main())
"""


class Watched(FileStore):
    """A store of its own on a file that others have too, as in another process; tells when a renewal begins."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.came = asyncio.Event()

    def alone(self, key: str) -> contextlib.AbstractAsyncContextManager[None]:
        self.came.set()
        return super().alone(key)


async def test_two_that_share_a_file_show_a_refresh_token_once(tmp_path):
    """An authorization server that sees one twice may take back everything that it ever gave."""
    shown: list[str] = []
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def renewed(asked: Asked) -> bytes:
        shown.append(asked.form["refresh_token"])
        reached.set()
        await go_on.wait()
        return here.usual(asked)

    async with site() as here, sending() as sender:
        path, clock = tmp_path / "tokens.json", Later()
        await login(here.url, auth=OAuth(interaction=Headless(sender), store=FileStore(path)), sender=sender)
        here.over["/token"], here.grants["expires_in"], clock.shift = renewed, 36_000, 4000.0
        second = Watched(path)
        listings = [asyncio.ensure_future(listing(here, store=FileStore(path), clock=clock, interaction=Refuse()))]
        await reached.wait()
        listings.append(asyncio.ensure_future(listing(here, store=second, clock=clock, interaction=Refuse())))
        await second.came.wait()
        go_on.set()
        await asyncio.gather(*listings)
    assert shown == ["refresh-1"]


async def test_a_process_that_dies_while_it_renews_does_not_keep_the_others_out(tmp_path):
    reached = asyncio.Event()

    async def held(asked: Asked) -> bytes | None:
        if asked.form["grant_type"] != "refresh_token" or reached.is_set():
            return None
        reached.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with site() as here, sending() as sender:
        path, clock = tmp_path / "tokens.json", Later()
        await login(here.url, auth=OAuth(interaction=Headless(sender), store=FileStore(path)), sender=sender)
        here.over["/token"] = held
        source = str(Path(mcprelay.__file__).parents[1])
        dying = await asyncio.create_subprocess_exec(
            sys.executable, "-c", RENEWING, here.url, str(path), env={**os.environ, "PYTHONPATH": source}
        )
        await reached.wait()
        dying.kill()
        await dying.wait()
        clock.shift = 4000.0
        await listing(here, store=FileStore(path), clock=clock, interaction=Refuse())


async def test_logging_out_at_one_server_leaves_the_other_of_the_same_issuer_renewable():
    clock, store = Later(), MemoryStore()

    def strict(asked: Asked) -> bytes | None:
        return None if asked.form.get("client_secret") == "s3cret-of-it" else reply(401, {"error": "invalid_client"})

    async with site() as issuer, site() as other, sending() as sender:
        issuer.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
        issuer.registered = {"client_secret": "s3cret-of-it"}
        issuer.over["/token"] = strict
        other.resource = {"authorization_servers": [issuer.origin]}
        auth = OAuth(interaction=Headless(sender), store=store)
        for each in (issuer, other):
            await login(each.url, auth=auth, sender=sender)
        await logout(issuer.url, auth=auth, sender=sender)
        clock.shift = 4000.0
        other.accepts = lambda token: token == "access-3"
        await listing(other, store=store, clock=clock, interaction=Refuse())
        assert issuer.asked("/token")[-1].form["grant_type"] == "refresh_token"


# --------------------------------------------------------------------------------------------------------------- disks


async def test_a_pipe_or_a_device_in_the_place_of_the_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(ConfigurationError, match="no regular file"):
            await FileStore(path).load("a")
    with pytest.raises(ConfigurationError, match="Is a directory"):
        await FileStore(tmp_path).load("a")


async def test_a_symbolic_link_to_the_file_stays_one(tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to(real)
    await FileStore(link).save("a", "1")
    assert link.is_symlink()
    assert json.loads(real.read_text()) == {"a": "1"}
    assert real.stat().st_mode & 0o777 == 0o600
    assert await FileStore(link).load("a") == "1"


async def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "t.json.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        await FileStore(tmp_path / "t.json").save("a", "1")
    assert not (tmp_path / "elsewhere").exists()


async def test_a_lock_that_nobody_gives_back_ends_the_wait_by_its_name(tmp_path):
    store = FileStore(tmp_path / "t.json", lock_timeout=0.05)
    with Lock(tmp_path / "t.json.lock") as held:
        assert held.taken()
        with pytest.raises(ConfigurationError, match=r"lock_timeout=0\.05"):
            await store.save("a", "1")
    await store.save("a", "1")


class FullDisk(MemoryStore):
    full = False

    async def save(self, key: str, value: str) -> None:
        if self.full:
            raise ConfigurationError("the token file cannot be written: No space left on device")
        await super().save(key, value)


async def test_a_renewed_token_that_cannot_be_kept_is_used_and_told_in_the_log(caplog):
    clock, store = Later(), FullDisk()
    async with site() as here, sending() as sender:
        auth = OAuth(interaction=Headless(sender), store=store, clock=clock)
        async with Client(here.url, auth=auth) as client:
            await client.list_tools()
            store.full, clock.shift = True, 4000.0
            await client.call_tool("x")
            await client.call_tool("x")
        assert here.issued == 2
        assert "good until this process ends: the token file cannot be written: No space left" in caplog.text
        assert "access-" not in caplog.text


async def test_a_login_that_cannot_be_kept_fails():
    store = FullDisk()
    async with site() as here, sending() as sender:
        auth = OAuth(interaction=Headless(sender), store=store)
        await login(here.url, auth=auth, sender=sender)
        store.full = True
        with pytest.raises(ConfigurationError, match="No space left"):
            await login(here.url, auth=auth, sender=sender)


# ------------------------------------------------------------------------------------------------------------- advice


async def test_a_step_up_where_nobody_can_be_asked_names_the_scopes_to_log_in_with(tmp_path):
    def wanting(asked: Asked) -> bytes | None:
        more = 'Bearer error="insufficient_scope", scope="admin write"'
        return reply(403, www_authenticate=more) if asked.token else None

    async with site() as here, sending() as sender:
        store = FileStore(tmp_path / "tokens.json")
        here.resource = {"scopes_supported": ["read"]}
        await login(here.url, auth=OAuth(interaction=Headless(sender), store=store), sender=sender)
        here.over["/mcp"] = wanting
        with pytest.raises(AuthorizationRequired) as caught:
            async with Client(here.url, auth=stored("clock", store=store)) as client:
                await client.list_tools()
    assert "run: mcprelay login clock --scope 'read admin write'" in str(caught.value)


async def test_the_command_to_run_ends_the_sentence_where_a_server_publishes_nothing():
    async with site() as here:
        here.over = {METADATA: reply(404), SERVER_METADATA: reply(404)}
        with pytest.raises(AuthorizationRequired, match=r"run: mcprelay login clock\.$"):
            async with Client(here.url, auth=stored("clock", store=MemoryStore())) as client:
                await client.list_tools()


async def test_whatever_fails_where_nobody_can_be_asked_the_command_is_named():
    async with site() as here:
        here.over[METADATA] = reply(500)
        with pytest.raises(AuthorizationRequired, match=r"answered 500; to log in anew, run: mcprelay login clock\.$"):
            async with Client(here.url, auth=stored("clock", store=MemoryStore())) as client:
                await client.list_tools()


async def test_a_client_registered_by_hand_is_given_once_and_remembered():
    clock, store = Later(), MemoryStore()
    seen: list[str | None] = []

    def strict(asked: Asked) -> bytes | None:
        seen.append(asked.form.get("client_secret"))
        return None

    async with site() as here, sending() as sender:
        here.metadata = {"registration_endpoint": "", "token_endpoint_auth_methods_supported": ["client_secret_post"]}
        here.over["/token"] = strict
        known = mcprelay.auth.Registered(client_id="by-hand", client_secret="s3cret-of-it")
        auth = OAuth(interaction=Headless(sender), store=store, client=known)
        await login(here.url, auth=auth, sender=sender, client="remembered")
        again = OAuth(interaction=Headless(sender), store=store)
        assert (await login(here.url, auth=again, sender=sender)).client_id == "by-hand"
        clock.shift = 4000.0
        await listing(here, store=store, clock=clock, interaction=Refuse())
    assert seen == ["s3cret-of-it"] * 3
