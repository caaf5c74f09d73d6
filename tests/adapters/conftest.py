import pytest

from tests.adapters.house import guarded


@pytest.fixture
async def tools():
    async with guarded() as tools:
        yield tools
