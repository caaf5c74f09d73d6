import asyncio
import socket

import pytest

from mcprelay.auth import Application, Browser, Headless, Loopback, Paste, Refuse
from mcprelay.auth.callback import CallbackServer
from mcprelay.auth.failure import StepFailed
from mcprelay.errors import AuthorizationRequired, ConfigurationError
from tests.auth.world import MCP, Reply, World, call, world


async def get(url: str, *, method: str = "GET", host: str | None = None) -> str:
    """Fetch a page of a callback server as a browser does; the whole answer."""
    authority, _, target = url.removeprefix("http://").partition("/")
    name, _, port = authority.rpartition(":")
    reader, writer = await asyncio.open_connection(name.strip("[]"), int(port))
    writer.write(f"{method} /{target} HTTP/1.1\r\nHost: {host or authority}\r\nAccept: */*\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer.decode()


async def refused(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        return True
    writer.close()
    await writer.wait_closed()
    return False


# ------------------------------------------------------------------------------------------------------ callback server


@pytest.fixture
async def server():
    server = CallbackServer()
    await server.start()
    server.expect("right")
    yield server
    await server.aclose()


async def test_the_answer_is_the_url_of_the_request_with_the_state(server):
    assert server.redirect_uri == f"http://127.0.0.1:{server.port}/callback"
    url = server.redirect_uri + "?code=abc&state=right"
    page = await get(url)
    assert page.startswith("HTTP/1.1 200 OK")
    assert await server.answer() == url


@pytest.mark.parametrize(
    ("target", "method", "host"),
    [
        ("/callback?code=evil&state=wrong", "GET", None),
        ("/callback?code=evil", "GET", None),
        ("/favicon.ico?state=right", "GET", None),
        ("/callback/?code=evil&state=right", "GET", None),
        ("/callback?code=evil&state=right", "POST", None),
        ("/callback?code=evil&state=right", "GET", "evil.example"),
        ("/callback?code=evil&state=right", "GET", "127.0.0.1"),
    ],
)
async def test_any_other_request_is_turned_away_and_the_wait_goes_on(server, target, method, host):
    page = await get(f"http://127.0.0.1:{server.port}{target}", method=method, host=host)
    assert page.startswith("HTTP/1.1 404")
    assert "evil" not in page
    right = server.redirect_uri + "?code=abc&state=right"
    await get(right)
    assert await server.answer() == right


async def test_the_first_answer_counts(server):
    first = server.redirect_uri + "?code=1&state=right"
    await get(first)
    await get(server.redirect_uri + "?code=2&state=right")
    assert await server.answer() == first


async def test_garbage_and_silence_do_not_end_the_wait(server):
    for data in (b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"\r\n\r\n", b"GET /" + b"a" * 70_000, b""):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(data)
        writer.write_eof()
        writer.close()
    right = server.redirect_uri + "?code=abc&state=right"
    await get(right)
    assert await server.answer() == right


async def test_a_connection_that_stays_open_does_not_keep_the_server_from_closing():
    server = CallbackServer()
    await server.start()
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    async with asyncio.timeout(5):
        await server.aclose()
    writer.close()
    assert await refused(server.port)


async def test_the_page_says_nothing_of_the_answer_and_is_not_kept(server):
    page = await get(server.redirect_uri + "?code=abc123&state=right&error=<script>")
    assert "abc123" not in page
    assert "<script>" not in page
    assert "Cache-Control: no-store" in page
    assert "Referrer-Policy: no-referrer" in page
    await server.answer()


async def test_a_preferred_port_is_taken_up_when_it_is_free_and_another_when_not():
    one = CallbackServer()
    await one.start()
    two = CallbackServer()
    await two.start(preferred=[one.redirect_uri, "https://app.example/callback", "nonsense"])
    assert two.port != one.port
    await one.aclose()
    three = CallbackServer()
    await three.start(preferred=[one.redirect_uri])
    assert three.port == one.port
    await two.aclose()
    await three.aclose()


async def test_a_fixed_port_that_is_taken_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"port {port} of 127.0.0.1 is taken"):
            await CallbackServer().start(port)


def test_answers_are_taken_on_this_machine_only():
    with pytest.raises(ConfigurationError, match="on this machine only"):
        CallbackServer(host="0.0.0.0")  # noqa: S104 - refused
    with pytest.raises(ConfigurationError, match="begin with a slash"):
        Browser(path="callback")


async def test_localhost_keeps_its_name_in_the_redirect_uri():
    server = CallbackServer(host="localhost")
    await server.start()
    assert server.redirect_uri == f"http://localhost:{server.port}/callback"
    url = server.redirect_uri + "?code=1"
    await get(url.replace("localhost", "127.0.0.1", 1), host=f"localhost:{server.port}")
    assert await server.answer() == url
    await server.aclose()


# --------------------------------------------------------------------------------------------------------- interactions


async def test_a_browser_is_opened_and_its_answer_awaited(make):
    network, _, issuer = world()
    opened: list[str] = []
    written: list[str] = []
    loop = asyncio.get_running_loop()

    def launch(url: str) -> bool:
        opened.append(url)
        location = issuer.authorize(type("R", (), {"url": url})()).headers["location"]
        asyncio.run_coroutine_threadsafe(get(location), loop)
        return True

    auth = make(network, interaction=Browser(launch=launch, write=written.append))
    assert (await call(auth.bind(MCP, sender=network), network)).status == 200
    assert opened[0].startswith("https://as.example.com/authorize?")
    assert issuer.questions[0]["redirect_uri"].startswith("http://127.0.0.1:")
    assert opened[0] in "".join(written)
    assert await refused(int(issuer.questions[0]["redirect_uri"].split(":")[2].split("/")[0]))


async def test_where_no_browser_starts_the_url_is_printed(make):
    network, _, issuer = world()
    written: list[str] = []
    tasks = []

    def write(text: str) -> None:
        written.append(text)
        (url,) = [word for word in text.split() if word.startswith("https://")]
        location = issuer.authorize(type("R", (), {"url": url})()).headers["location"]
        tasks.append(asyncio.ensure_future(get(location)))

    auth = make(network, interaction=Browser(launch=lambda url: False, write=write))
    assert (await call(auth.bind(MCP, sender=network), network)).status == 200
    assert "open this address" in written[0]
    await asyncio.gather(*tasks)


async def test_the_next_login_takes_the_registered_port_again(make):
    network, server, issuer = world()
    issuer.grants = {}
    tasks = []

    def write(text: str) -> None:
        (url,) = [word for word in text.split() if word.startswith("https://")]
        location = issuer.authorize(type("R", (), {"url": url})()).headers["location"]
        tasks.append(asyncio.ensure_future(get(location)))

    credentials = make(network, interaction=Loopback(write=write)).bind(MCP, sender=network)
    await call(credentials, network)
    server.accepts = lambda token: token == "token-2"
    await call(credentials, network)
    await asyncio.gather(*tasks)
    assert len(issuer.registrations) == 1
    assert issuer.questions[0]["redirect_uri"] == issuer.questions[1]["redirect_uri"]


async def test_a_port_that_is_taken_meanwhile_means_another_registration(make):
    network, server, issuer = world()
    issuer.grants = {}
    tasks = []

    def write(text: str) -> None:
        (url,) = [word for word in text.split() if word.startswith("https://")]
        location = issuer.authorize(type("R", (), {"url": url})()).headers["location"]
        tasks.append(asyncio.ensure_future(get(location)))

    credentials = make(network, interaction=Loopback(write=write)).bind(MCP, sender=network)
    await call(credentials, network)
    port = int(issuer.questions[0]["redirect_uri"].split(":")[2].split("/")[0])
    blocker = CallbackServer()
    await blocker.start(port)
    server.accepts = lambda token: token == "token-2"
    await call(credentials, network)
    await asyncio.gather(*tasks)
    await blocker.aclose()
    assert len(issuer.registrations) == 2
    assert issuer.questions[1]["client_id"] == "client-2"


async def test_a_person_who_does_not_answer_is_waited_for_so_long(make):
    network, _, issuer = world()
    auth = make(network, interaction=Loopback(write=lambda text: None), interaction_timeout=0.02)
    with pytest.raises(
        AuthorizationRequired,
        match=r"nobody answered at https://as\.example\.com/authorize in interaction_timeout=0\.02",
    ):
        await call(auth.bind(MCP, sender=network), network)
    assert issuer.token_requests == []


async def test_a_call_that_gives_up_leaves_the_login_to_the_next_call(make):
    network, _, issuer = world()
    shown: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def write(text: str) -> None:
        shown.set_result(next(word for word in text.split() if word.startswith("https://")))

    credentials = make(network, interaction=Loopback(write=write)).bind(MCP, sender=network)
    first = asyncio.ensure_future(call(credentials, network))
    url = await shown
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    second = asyncio.ensure_future(call(credentials, network))
    await get(issuer.authorize(type("R", (), {"url": url})()).headers["location"])
    assert (await second).status == 200
    assert len(issuer.questions) == 1


async def test_a_pasted_address_is_the_answer(make):
    network, _, issuer = world()
    written: list[str] = []

    def read() -> str:
        url = next(word for word in "".join(written).split() if word.startswith("https://"))
        return issuer.authorize(type("R", (), {"url": url})()).headers["location"] + "\n"

    auth = make(network, interaction=Paste(write=written.append, read=read))
    assert (await call(auth.bind(MCP, sender=network), network)).status == 200


@pytest.mark.parametrize(
    "pasted", ["c0de", "https://as.example.com/done", "http://127.0.0.1:33418/other?code=c0de", ""]
)
async def test_what_is_no_answer_is_not_taken_for_one_when_it_is_pasted(pasted):
    paste = Paste(write=lambda _: None, read=lambda: pasted)
    with pytest.raises(
        StepFailed, match="does not begin with http://127.0.0.1:33418/callback; paste the whole"
    ) as caught:
        await paste.ask("https://as.example.com/authorize?state=x")
    assert "c0de" not in str(caught.value)


async def test_a_pasted_address_may_lack_the_scheme_that_browsers_hide():
    paste = Paste(write=lambda _: None, read=lambda: " 127.0.0.1:33418/callback?code=c&state=x \n")
    assert (
        await paste.ask("https://as.example.com/authorize?state=x") == "http://127.0.0.1:33418/callback?code=c&state=x"
    )


async def test_an_application_asks_in_its_own_way(make):
    network, _, issuer = world()

    async def ask(url: str) -> str:
        return issuer.authorize(type("R", (), {"url": url})()).headers["location"]

    auth = make(network, interaction=Application("https://app.example.com/back", ask))
    assert (await call(auth.bind(MCP, sender=network), network)).status == 200
    assert issuer.registrations[0]["application_type"] == "web"
    assert issuer.questions[0]["redirect_uri"] == "https://app.example.com/back"


async def test_nobody_follows_the_pages_of_an_authorization_server_on_their_way_back():
    network = World()
    steps = iter(
        [Reply(302, {"location": "/login"}), Reply(303, {"location": "http://127.0.0.1:33418/callback?code=1"})]
    )
    network.add("https://as.example.com", lambda request: next(steps))
    async with Headless(network).open() as conversation:
        assert await conversation.ask("https://as.example.com/authorize") == "http://127.0.0.1:33418/callback?code=1"
    assert network.urls == ["GET https://as.example.com/authorize", "GET https://as.example.com/login"]


async def test_pages_that_lead_nowhere_are_an_error():
    network = World()
    network.add("https://as.example.com", lambda request: Reply(302, {"location": "/again"}))
    async with Headless(network).open() as conversation:
        with pytest.raises(StepFailed, match="redirected 5 times and never back"):
            await conversation.ask("https://as.example.com/authorize")
    network.add("https://as.example.com", lambda request: Reply(200))
    async with Headless(network).open() as conversation:
        with pytest.raises(StepFailed, match="answered 200 and sent nobody back"):
            await conversation.ask("https://as.example.com/authorize")


async def test_refusing_to_ask_is_a_step_that_failed():
    with pytest.raises(StepFailed, match="no person can be asked here; log in first"):
        async with Refuse().open():
            pass
