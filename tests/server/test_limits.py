"""Limits: each a number, refused where it is given if it is none."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from mcprelay import ConfigurationError, Limits


@pytest.mark.parametrize("name", Limits.__struct_fields__)
@pytest.mark.parametrize("value", [-1, "5", True, float("nan"), [1]])
def test_a_limit_is_a_number_that_is_not_negative(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"limits: {name} is a number of at least"):
        Limits(**{name: value})


@pytest.mark.parametrize("name", Limits.__struct_fields__)
def test_a_limit_may_be_any_number_from_its_least_on(name: str) -> None:
    assert getattr(Limits(**{name: 1}), name) == 1
    assert Limits(page_size=None).page_size is None


@pytest.mark.parametrize("name", ["page_size", "worker_threads"])
def test_some_limits_cannot_be_nothing(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} is a number of at least 1, and not 0"):
        Limits(**{name: 0})


def test_what_is_documented_of_each_limit_is_documented_by_its_name() -> None:
    said = inspect.cleandoc(Limits.__doc__ or "")
    assert [name for name in Limits.__struct_fields__ if f"\n    {name}: " not in said] == []
