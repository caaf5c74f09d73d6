"""What becomes of a tool that nobody has reviewed, by what `pins` says and by what the lock has of its server."""

import logging

import pytest

from mcprelay import Relay
from mcprelay.relay import DefinitionRefused, Lock
from mcprelay.relay.lock import save
from mcprelay.relay.lockfile import LockFile, Usual
from mcprelay.relay.pins import define
from tests.relay.far import ADD, SEARCH, Far

LOCKS = {
    "none": None,
    "empty": Lock(),
    "a section without it": Lock().reviewed("far", [define(ADD)], revision=None),
    "a section with it": Lock().reviewed("far", [define(SEARCH)], revision=None),
}
WITHOUT_SECTION = ("none", "empty")


@pytest.mark.parametrize("held", list(LOCKS))
@pytest.mark.parametrize("pins", [None, "optional", "required"])
async def test_a_tool_is_offered_where_it_was_reviewed_or_where_nobody_asked_for_a_review(pins, held):
    far = Far(SEARCH)
    said = {} if pins is None else {"pins": pins}
    async with Relay(servers={"far": {"target": far, "allow": ["search"], **said}}, lock=LOCKS[held]) as relay:
        tools = await relay.tools()
        report = tools.report()
        reviewed = held == "a section with it"
        unasked = pins == "optional" or (pins is None and held in WITHOUT_SECTION)
        assert report.offered == (("far__search",) if reviewed or unasked else ())
        assert report.unpinned == (("far__search",) if unasked and not reviewed else ())
        assert [left.tool for left in report.new] == ([] if reviewed or unasked else ["search"])
        assert report.is_clean is (reviewed or unasked)
        called = await tools.run("far__search", {"q": "tea"})
        assert called.failed is not bool(report.offered)
        assert len(far.of("tools/call")) == len(report.offered)
        if report.new:
            assert "`mcprelay lock far`" in report.new[0].reason
            assert ('pins = "required"' in report.new[0].reason) is (held in WITHOUT_SECTION)
            with pytest.raises(DefinitionRefused, match="`mcprelay lock far`"):
                await relay.tools(strict=True)


async def test_a_digest_in_the_settings_reviews_a_tool_without_any_lock():
    server = {"target": Far(SEARCH), "allow": "*", "pins": {"search": define(SEARCH).digest}}
    async with Relay(servers={"far": server}, lock=None) as relay:
        report = (await relay.tools()).report()
        assert (report.offered, report.unpinned) == (("far__search",), ())


async def test_settings_after_a_name_demand_a_review_like_any_others():
    async with Relay(servers={"far": {"target": (far := Far(SEARCH)), "allow": "*"}}, lock=None) as relay:
        assert list((await relay.tools()).keys()) == ["far__search"]
        assert not await relay.tools("far", {"target": far, "allow": "*", "pins": "required"})


# --- a lock file that is not there ------------------------------------------------------------------------------------


async def test_a_lock_file_that_was_named_and_is_not_there_is_told_by_the_report_by_strict_and_by_the_log(
    tmp_path, caplog
):
    path = tmp_path / "mcprelay.lock.prod"
    with caplog.at_level(logging.WARNING, "mcprelay.relay"):
        async with Relay(servers={"far": {"target": Far(SEARCH), "allow": "*"}}, lock=path) as relay:
            tools = await relay.tools()
            report = tools.report()
            assert report.offered == ("far__search",)
            assert report.lock_lost
            assert not report.is_clean
            assert f"lock: none was read: there is no {path}, which lock= names" in str(report)
            assert (tools + tools).report().lock_lost
            with pytest.raises(DefinitionRefused, match=r"which lock= names"):
                await relay.tools(strict=True)
    assert [str(path) in record.getMessage() for record in caplog.records] == [True]  # once


async def test_a_lock_file_that_is_only_looked_for_may_be_missing(tmp_path, caplog, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mcprelay.toml").write_text("")
    servers = {"far": {"target": Far(SEARCH), "allow": "*"}}
    for relay in (Relay(servers=servers), Relay(servers=servers, lock=None), Relay.load().server(Far(), allow="*")):
        async with relay:
            report = (await relay.tools(strict=True)).report()
            assert report.is_clean
            assert not report.lock_lost
            assert report.lock
    assert not caplog.records


def test_a_named_file_counts_from_the_moment_that_it_is_there(tmp_path):
    path = tmp_path / "lock"
    for source, lost in ((path, True), (str(path), True), (Usual(path), False), (None, False), (Lock(), False)):
        seen = LockFile(source)
        seen.now()
        assert seen.lost is lost
    seen = LockFile(path)
    save(path, Lock())
    seen.now()
    assert not seen.lost
    assert not seen.absence
