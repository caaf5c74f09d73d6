"""What a relay reads beside tools: a server's prompts, resources and instructions, each under a list of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from mcprelay.errors import CallFailed, NeedsInput
from mcprelay.relay import audit, given
from mcprelay.relay.behalf import Behalf
from mcprelay.relay.budget import Ledger
from mcprelay.relay.errors import NotTrusted, TokenFailed
from mcprelay.relay.frame import Framed, FramedMessage
from mcprelay.relay.reveal import legible

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from mcprelay.relay.post import Post
    from mcprelay.relay.settings import ServerSettings


class Library:
    """The part of a relay that reads."""

    _behalf: Behalf

    if TYPE_CHECKING:

        def _server(self, name: str) -> ServerSettings: ...
        def _post(self, settings: ServerSettings) -> Post: ...

    async def prompt(
        self, server: str, name: str, arguments: Mapping[str, str] | None = None
    ) -> tuple[FramedMessage, ...]:
        """A server's prompt, each message framed. What goes wrong on the way is a framed message, too.

        Raises:
            NotTrusted: `prompts` does not name it; nothing was sent.
            SettingWrong: There is no such server; or the arguments are no texts, which is all that a prompt takes.
        """
        settings = self._server(server)
        given.text("prompt: the name", name)
        for key, value in given.mapping("prompt: arguments", arguments or {}, of="names and texts").items():
            given.text(f"prompt: the argument {key!r}", value)
        with self._watched("prompt", server, name):
            post = self._trusted(settings, name, "prompts")
            funnel = post.funnel(Ledger())
            try:
                found = await post.ask(
                    lambda client, until: client.get_prompt(name, arguments, deadline=until), ledger=funnel.ledger
                )
                messages = funnel.prompt(found)
            except (CallFailed, NeedsInput, TokenFailed) as error:
                messages = (FramedMessage("user", funnel.failure(error, cause=post.failed(error))),)
        asked = f"the prompt {legible(name)}"
        messages = tuple(FramedMessage(one.role, replace(one.framed, asked=asked)) for one in messages)
        self._recorded("prompt", post, name, *(message.framed for message in messages))
        return messages

    async def read(self, server: str, uri: str) -> Framed:
        """A server's resource, framed. What goes wrong on the way is framed, too.

        Raises:
            NotTrusted: `resources` does not name it; nothing was sent.
            SettingWrong: There is no such server.
        """
        settings = self._server(server)
        given.text("read: the URI", uri)
        with self._watched("read", server, uri):
            post = self._trusted(settings, uri, "resources")
            funnel = post.funnel(Ledger())
            try:
                found = await post.ask(
                    lambda client, until: client.read_resource(uri, deadline=until), ledger=funnel.ledger
                )
                framed = funnel.resource(found)
            except (CallFailed, NeedsInput, TokenFailed) as error:
                framed = funnel.failure(error, cause=post.failed(error))
        framed = replace(framed, asked=f"the resource {legible(uri)}")
        self._recorded("read", post, uri, framed)
        return framed

    async def instructions(self, server: str) -> Framed | None:
        """How a server wants to be used, framed; None where it says nothing of it.

        Raises:
            NotTrusted: `instructions = true` is not set; nothing was sent.
        """
        settings = self._server(server)
        with self._watched("instructions", server, ""):
            if not settings.instructions:
                raise NotTrusted(
                    f"The instructions of the server {server!r} may not be shown, so nothing was sent to it: it takes"
                    " instructions = true in its settings.",
                    server=server,
                )
            post = self._post(settings)
            funnel = post.funnel(Ledger())
            try:
                face = await post.ask(lambda client, until: client.discover(deadline=until), ledger=funnel.ledger)
            except (CallFailed, TokenFailed) as error:
                framed = funnel.failure(error, cause=post.failed(error))
            else:
                if not face.instructions:
                    return None
                framed = funnel.text(face.instructions, kind="instructions")
        framed = replace(framed, asked="the instructions")
        self._recorded("instructions", post, "", framed)
        return framed

    def _trusted(self, settings: ServerSettings, name: str, key: Literal["prompts", "resources"]) -> Post:
        server, trust = settings.name, settings.prompts if key == "prompts" else settings.resources
        trust.require(server, what=key, key=key)
        if not trust.allows(name):
            raise NotTrusted(
                f"{key} of the server {server!r} does not name {legible(name)}, so nothing was sent; name it there, if"
                " it may be shown",
                server=server,
            )
        return self._post(settings)

    def _watched(self, event: str, server: str, name: str) -> AbstractContextManager[None]:
        return audit.watched(event, server=server, tool=name, principal=self._behalf.principal)

    def _recorded(self, event: str, post: Post, name: str, *framed: Framed) -> None:
        for one in framed:
            audit.record(
                event,
                server=post.settings.name,
                tool=name,
                verdict=audit.verdict(one),
                principal=self._behalf.principal,
                size=one.size,
            )
