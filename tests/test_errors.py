"""What errors say, and what they hold for the program."""

import pytest

from mcprelay.errors import ConfigurationError, RequestRefused, ResourceError, ResourceNotFound


def test_a_missing_resource_says_which():
    error = ResourceNotFound("file:///a")
    assert isinstance(error, ResourceError)
    assert (error.uri, str(error)) == ("file:///a", "Resource not found: file:///a")
    assert str(ResourceNotFound("file:///a", "moved")) == "moved"


@pytest.mark.parametrize("status", [200, 399, 600, -1])
def test_a_refusal_has_the_status_of_one(status: int):
    with pytest.raises(ConfigurationError, match=f"from 400 to 599, and not {status}"):
        RequestRefused(status, "no")


def test_a_refusal_keeps_what_is_answered():
    given = {"retry-after": "5"}
    error = RequestRefused(429, "later", headers=given)
    given.clear()
    assert (error.status, error.message, error.headers) == (429, "later", {"retry-after": "5"})
    assert RequestRefused(404, "no").headers == {}
