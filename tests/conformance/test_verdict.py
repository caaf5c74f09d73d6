"""The gate is stricter than the suite, and no empty result passes it."""

from pathlib import Path

import pytest

from tests.conformance.suite import SIDES, Check, Run, Suite
from tests.conformance.verdict import Exemption, complaints, judge, load_exemptions

HERE = Path(__file__).parent
OK = Check("a", "A", "SUCCESS", "")


def run(*checks: Check, scenario: str = "s", exit_code: int | None = 0, timed_out: bool = False) -> Run:
    return Run("client", "2026-07-28", scenario, checks, exit_code, timed_out=timed_out)


def test_a_run_with_every_check_a_success_is_clean():
    assert list(complaints(run(OK), {"a"})) == []


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (run(), "no checks"),
        (run(OK, Check("b", "B", "FAILURE", "why")), "FAILURE b: why"),
        (run(OK, Check("b", "B", "WARNING", "why")), "WARNING b: why"),
        (run(OK, Check("b", "B", "SKIPPED", "why")), r"SKIPPED b \(B\): why"),
        (run(Check("a", "A", "INFO", "")), "MISSING a"),
        (run(Check("b", "B", "SUCCESS", "")), "MISSING a"),
        (run(OK, exit_code=1), "exit code is 1"),
        (run(OK, timed_out=True), "timed out"),
    ],
)
def test_whatever_the_suite_forgives_is_a_complaint(case: Run, reason: str):
    with pytest.raises(AssertionError, match=reason):
        assert not list(complaints(case, {"a"}))


def test_only_the_named_skips_of_the_named_scenario_are_forgiven():
    skip = Check("a", "ClientMcpMethodHeader_initialize", "SKIPPED", "")
    assert list(complaints(run(OK, skip, scenario="http-standard-headers"), {"a"})) == []
    assert list(complaints(run(OK, skip, scenario="tools_call"), {"a"})) != []


def test_a_listed_scenario_must_not_be_clean_and_another_must():
    listed = Exemption("client", "s", (), "not built")
    assert judge(run(), {"a"}, [listed]).as_expected
    assert not judge(run(OK), {"a"}, [listed]).as_expected
    assert not judge(run(), {"a"}, []).as_expected
    assert judge(run(OK), {"a"}, []).as_expected


def test_an_entry_covers_its_side_pattern_and_versions_only():
    entry = Exemption("client", "auth/*", ("2026-07-28",), "later")
    auth = run(scenario="auth/dpop")
    assert entry.covers(auth)
    assert not entry.covers(run(scenario="tools_call"))
    assert not entry.covers(Run("server", "2026-07-28", "auth/dpop", ()))
    assert not entry.covers(Run("client", "ext", "auth/dpop", ()))
    assert Exemption("client", "auth/*", (), "later").covers(Run("client", "ext", "auth/dpop", ()))


def test_an_entry_without_a_reason_is_refused(tmp_path: Path):
    path = tmp_path / "expected.toml"
    path.write_text('[[expected]]\nside = "client"\nscenario = "x"\n')
    with pytest.raises(ValueError, match="reason"):
        load_exemptions(path)


def test_every_entry_of_the_list_speaks_of_a_scenario():
    suite = Suite()
    everything = [
        Run(side, v, name, ()) for side in SIDES for v in suite.versions() for name in suite.scenarios(side, v)
    ]
    for entry in load_exemptions(HERE / "expected.toml"):
        assert any(entry.covers(case) for case in everything), entry


def test_every_scenario_says_which_checks_a_green_run_has():
    suite = Suite()
    for side in SIDES:
        for version in suite.versions():
            for name in suite.scenarios(side, version):
                assert suite.expected_ids(Run(side, version, name, ())), (side, version, name)


def test_the_suite_and_its_lock_name_no_place_to_download_from():
    for name in ("package.json", "package-lock.json"):
        assert "resolved" not in (HERE / name).read_text(encoding="utf-8")
