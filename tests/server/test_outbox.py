"""What waits for a slow reader is bounded, and what must not be lost is not lost."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from mcprelay.server.outbox import Outbox
from mcprelay.wire import jsonrpc


def progress(token: Any, value: int, padding: str = "") -> bytes:
    params = {"progressToken": token, "progress": value, "message": padding}
    return jsonrpc.notification("notifications/progress", jsonrpc.encode(params))


def log(text: str) -> bytes:
    return jsonrpc.notification("notifications/message", jsonrpc.encode({"level": "info", "data": text}))


def values(box: Outbox) -> list[Any]:
    return [json.loads(message)["params"]["progress"] for message in box.take()]


def test_messages_come_out_in_order_and_once() -> None:
    box = Outbox()
    for message in (b"a", b"b"):
        box.put(message)
    assert len(box) == 2
    assert box.take() == [b"a", b"b"]
    assert box.take() == []


def test_beyond_the_limit_newer_progress_takes_the_place_of_older() -> None:
    box = Outbox(400)
    for value in range(1000):
        box.put(progress("t", value))
    left = values(box)
    assert left[-1] == 999
    assert left == sorted(left)
    assert len(left) < 10


def test_progress_of_different_requests_is_not_mixed_up() -> None:
    box = Outbox(500)
    for value in range(100):
        for token in ("a,b", "a,c", 1):
            box.put(progress(token, value))
    last = {}
    for message in box.take():
        params = json.loads(message)["params"]
        last[params["progressToken"]] = params["progress"]
    assert last == {"a,b": 99, "a,c": 99, 1: 99}


def test_beyond_the_limit_log_messages_are_dropped_and_the_limit_is_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    box = Outbox(300)
    with caplog.at_level(logging.WARNING, "mcprelay.server"):
        for value in range(100):
            box.put(log(f"message {value}"))
    kept = [json.loads(message)["params"]["data"] for message in box.take()]
    assert kept == [f"message {value}" for value in range(len(kept))]
    assert 0 < len(kept) < 10
    assert [record.getMessage() for record in caplog.records if "stream_bytes=300" in record.getMessage()] != []
    assert len(caplog.records) == 1


def test_a_message_that_is_larger_than_the_limit_goes_out_when_nothing_else_waits() -> None:
    box = Outbox(10)
    box.put(log("x" * 100))
    assert len(box.take()) == 1


def test_answers_and_questions_are_never_dropped() -> None:
    box = Outbox(10)
    answers = [jsonrpc.response(number, b"{}") for number in range(100)]
    for answer in answers:
        box.put(answer)
    assert box.take() == answers


def test_there_is_room_again_after_messages_were_taken() -> None:
    box = Outbox(300)
    for _ in range(100):
        box.put(log("x"))
    box.take()
    box.put(log("after"))
    assert b"after" in box.take()[0]
