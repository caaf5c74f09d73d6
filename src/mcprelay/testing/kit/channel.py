"""Whether a `Channel` keeps its promises."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from mcprelay.errors import NotSent
from mcprelay.ports import Channel
from mcprelay.testing.kit.promise import PATIENCE, Make, close, made, promise, turns, within

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence


async def check_channel(
    make: Make[tuple[Channel, Channel]], *, largest: int = 2**20, patience: float = PATIENCE
) -> None:
    """Hold a channel against the promises of `ports.Channel`.

    Args:
        make: Gives a new connected pair each time: what one end sends, the other receives. If only one end is yours,
            use any channel that keeps its promises as the other.
        largest: The size of the largest message tried, in bytes.
        patience: Seconds that may pass before something that should happen, closing too, counts as not happening.

    Raises:
        AssertionError: A promise is broken; the message says which.
    """
    for check in _CHECKS:
        for forth in (True, False):
            near, far = _both(await made(make))
            ends = _Ends(*((near, far) if forth else (far, near)), largest=largest, patience=patience)
            try:
                await check(ends)
            finally:
                await ends.give_up()


def _both(ends: Any) -> tuple[Channel, Channel]:
    if not isinstance(ends, (tuple, list)) or len(ends) != 2:
        raise TypeError(f"make gives a connected pair of channels, (near, far), and not {ends!r}")
    return ends[0], ends[1]


class _Ends:
    """A connected pair, seen from one of its ends."""

    def __init__(self, near: Channel, far: Channel, *, largest: int, patience: float) -> None:
        self.near = near
        self.far = far
        self.largest = largest
        self.patience = patience
        self._tasks: list[asyncio.Task[None]] = []

    async def expect(self, sent: Sequence[bytes], what: str, *, end: Channel | None = None) -> None:
        """These messages, and no others, are received next."""
        for number, message in enumerate(sent):
            got = await self.receive(f"{what}: message {number} of {len(sent)} did not arrive", end=end)
            promise(isinstance(got, bytes), f"{what}: receive() gave {type(got).__name__}, and must give bytes")
            promise(got == message, f"{what}: message {number} is {_short(got)} and should be {_short(message)}")

    async def receive(self, broken: str, *, end: Channel | None = None) -> bytes:
        try:
            return await within(self.patience, (end or self.far).receive(), broken)
        except AssertionError as error:
            raise AssertionError(f"{error}{self._failures()}") from error
        except Exception as error:
            raise AssertionError(f"{broken}: receive() raised {error!r}") from error

    def _failures(self) -> str:
        failed = [task for task in self._tasks if task.done() and not task.cancelled() and task.exception()]
        return "".join(f"; send() raised {task.exception()!r}" for task in failed)

    async def send(self, message: bytes, what: str) -> None:
        try:
            await within(self.patience, self.near.send(message), f"{what}: send() did not return")
        except NotSent as error:
            raise AssertionError(f"{what}: send() raised NotSent on an open channel: {error}") from error

    def sending(self, messages: Sequence[bytes], *, end: Channel | None = None) -> asyncio.Task[None]:
        async def send() -> None:
            for message in messages:
                await (end or self.near).send(message)

        return self.spawn(send())

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self._tasks.append(task := asyncio.ensure_future(work))
        return task

    async def give_up(self) -> None:
        """Leave nothing behind, however broken it is."""
        closing = [asyncio.ensure_future(close(end)) for end in (self.near, self.far)]
        await asyncio.wait(closing, timeout=self.patience)
        for task in (*closing, *self._tasks):
            task.cancel()
        await asyncio.gather(*closing, *self._tasks, return_exceptions=True)

    async def ended(self, end: Channel, what: str) -> None:
        for _ in range(3):
            got = await self.receive(f"{what}: receive() waits on", end=end)
            promise(got == b"", f"{what}: receive() gave {_short(got)}, and b'' is the end and stays the end")


def message(number: int, size: int = 0) -> bytes:
    """A message of JSON that can be told from others, of about `size` bytes."""
    return b'{"number": %d, "text": "%s"}' % (number, b"%x" % (number % 16) * size)


def _short(data: object) -> str:
    text = repr(data)
    return text if len(text) <= 60 else f"{text[:40]}… ({len(data) if isinstance(data, bytes) else 0} bytes)"


async def _whole_and_in_order(ends: _Ends) -> None:
    sizes = (0, 1, 100, 5_000, 65_535, 65_536, 65_537, ends.largest)
    messages = [message(number, min(size, ends.largest)) for number, size in enumerate(sizes)]
    messages += [b"{}", '{"text": "\u2028\u2029\x85 é 漢 🎉 \\n \\u0000"}'.encode(), b"[]", b"1", b'" "']
    sending = ends.sending(messages)
    await ends.expect(messages, "messages arrive whole and in order")
    await within(ends.patience, sending, "send() returns once its message was received")


async def _many_small_ones(ends: _Ends) -> None:
    messages = [message(number) for number in range(2_000)]
    sending = ends.sending(messages)
    await ends.expect(messages, "many small messages arrive in order")
    await within(ends.patience, sending, "send() returns once its message was received")


async def _both_ways_at_once(ends: _Ends) -> None:
    messages = [message(number, ends.largest) for number in range(3)]
    tasks = [ends.sending(messages), ends.sending(messages, end=ends.far)]
    what = "large messages pass both ways at once"
    await asyncio.gather(ends.expect(messages, what), ends.expect(messages, what, end=ends.near))
    await within(ends.patience, asyncio.gather(*tasks), f"{what}: send() did not return")


async def _sent_from_several_tasks(ends: _Ends) -> None:
    sizes = (ends.largest, 10, 70_000, 0, ends.largest, 3)
    messages = [message(number, min(sizes[number % len(sizes)], ends.largest)) for number in range(30)]
    tasks = [ends.sending([each]) for each in messages]
    await turns()
    await ends.expect(messages, "messages sent from several tasks arrive whole, in the order of the calls")
    await within(ends.patience, asyncio.gather(*tasks), "send() returns once its message was received")


async def _sent_while_others_wait(ends: _Ends) -> None:
    """Whoever sends in the moment in which there is room again does not overtake those that wait for it."""
    what = "messages are sent in the order of the calls, although a later call comes when there is room again"
    waiting = [message(number, ends.largest) for number in range(8)]
    tasks = [ends.sending([each]) for each in waiting]
    await turns(50)
    late = message(8)
    got: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def receive_and_send() -> None:
        got.set_result(await ends.far.receive())
        await ends.near.send(late)

    tasks.append(ends.spawn(receive_and_send()))
    first = await within(ends.patience, got, f"{what}: nothing arrives")
    promise(first == waiting[0], f"{what}: this arrived first: {_short(first)}")
    await ends.expect([*waiting[1:], late], what)
    await within(ends.patience, asyncio.gather(*tasks), "send() returns once its message was received")


async def _a_receive_that_is_cancelled(ends: _Ends) -> None:
    what = "a receive() that is cancelled loses no message"
    for number in range(12):
        receiving = asyncio.ensure_future(ends.far.receive())
        await turns(number % 3)
        await ends.send(message(number), what)
        await turns(number)
        receiving.cancel()
        await within(ends.patience, asyncio.wait([receiving]), f"{what}: it cannot be cancelled")
        if receiving.cancelled() or receiving.exception() is not None:
            await ends.expect([message(number)], what)
        else:
            promise(receiving.result() == message(number), f"{what}: it gave {_short(receiving.result())}")


async def _a_send_that_is_cancelled(ends: _Ends) -> None:
    """Whether it left or not is the channel's choice, and so is ending; half a message is not."""
    before = [message(0)]
    large = message(1, ends.largest)
    sending = ends.sending([*before, *[large] * 16])
    await turns(50)
    sending.cancel()
    await within(ends.patience, asyncio.wait([sending]), "a send() that waits can be cancelled")
    after = ends.sending([message(2)])
    what = "after a send() that was cancelled messages are whole and in order"
    await ends.expect(before, what)
    got = await ends.receive(f"{what}: nothing arrives")
    while got == large:
        got = await ends.receive(f"{what}: nothing arrives")
    promise(got in (message(2), b""), f"{what}: this arrived: {_short(got)}")
    await asyncio.wait([after], timeout=ends.patience)


async def _closing_this_end(ends: _Ends) -> None:
    waiting = ends.receive("a receive() that waits returns when its end is closed", end=ends.near)
    receiving = asyncio.ensure_future(waiting)
    await turns()
    await within(ends.patience, ends.near.aclose(), "aclose() returns in time")
    got = await receiving
    promise(got == b"", f"a receive() that waits returns b'' when its end is closed, and not {_short(got)}")
    await ends.ended(ends.near, "after aclose()")
    for _ in range(2):
        await within(ends.patience, ends.near.aclose(), "closing twice is closing once: the second aclose() waits on")


async def _closing_from_two_tasks(ends: _Ends) -> None:
    both = asyncio.gather(ends.near.aclose(), ends.near.aclose())
    await within(ends.patience, both, "aclose() from two tasks at once returns in both")


async def _sending_on_a_closed_channel(ends: _Ends) -> None:
    what = "send() raises NotSent on a channel that this side closed, since no byte can leave"
    await ends.near.aclose()
    try:
        await within(ends.patience, ends.near.send(message(0)), f"{what}, and must not wait")
    except NotSent:
        return
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(f"{what}; it raised {error!r}") from error
    raise AssertionError(f"{what}; it returned")


async def _closing_the_other_end(ends: _Ends) -> None:
    sent = [message(number) for number in range(5)]
    for each in sent:
        await ends.send(each, "sending before closing")
    await within(ends.patience, ends.near.aclose(), "aclose() returns in time")
    what = "after the other end was closed"
    for each in sent:
        got = await ends.receive(f"{what}: receive() waits on")
        if got == b"":
            break
        promise(got == each, f"{what}: what arrives is whole and in order, and this is not: {_short(got)}")
    await ends.ended(ends.far, what)


async def _sending_to_an_end_that_was_closed(ends: _Ends) -> None:
    await ends.far.aclose()
    for number in range(100):
        sending = ends.sending([message(number, 10_000)])
        await within(ends.patience, asyncio.wait([sending]), "send() to an end that was closed returns or raises")
        if sending.exception() is not None:
            return
        await asyncio.sleep(0.001)


async def _closing_while_a_send_waits(ends: _Ends) -> None:
    sending = ends.sending([message(number, ends.largest) for number in range(16)])
    await turns(50)
    await within(ends.patience, ends.near.aclose(), "aclose() returns in time although a send() waits")
    await within(ends.patience, asyncio.wait([sending]), "a send() that waits returns or raises when its end is closed")


_CHECKS = (
    _whole_and_in_order,
    _many_small_ones,
    _both_ways_at_once,
    _sent_from_several_tasks,
    _sent_while_others_wait,
    _a_receive_that_is_cancelled,
    _a_send_that_is_cancelled,
    _closing_this_end,
    _closing_from_two_tasks,
    _sending_on_a_closed_channel,
    _closing_the_other_end,
    _sending_to_an_end_that_was_closed,
    _closing_while_a_send_waits,
)
