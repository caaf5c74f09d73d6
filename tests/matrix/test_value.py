"""What tools return, as each revision can carry it, and as the client gives it back."""

import msgspec
import pytest

from mcprelay import Audio, EmbeddedResource, Image, ResourceLink, Text
from mcprelay.revisions import Feature
from tests.matrix.conftest import House
from tests.matrix.house import PIXEL, SOUND, Weather

pytestmark = pytest.mark.asyncio(loop_scope="session")


def structured(house: House, value):
    """How a value that is no object is carried."""
    if not house.has(Feature.STRUCTURED):
        return msgspec.UNSET
    return value if house.has(Feature.ANY_STRUCTURED) else {"result": value}


async def test_a_number_comes_back_as_a_number(house: House):
    result = await house.client.call_tool("add", {"a": 1, "b": 2}, output=int)
    assert result.value == 3
    assert result.text == "3"
    assert result.structured == structured(house, 3)


async def test_a_list_comes_back_as_a_list(house: House):
    result = await house.client.call_tool("count", {"to": 3}, output=list[int])
    assert result.value == [1, 2, 3]
    assert result.structured == structured(house, [1, 2, 3])


async def test_nothing_comes_back_as_nothing(house: House):
    result = await house.client.call_tool("nothing", output=int | None)
    assert result.structured == structured(house, None)
    if house.has(Feature.STRUCTURED):
        assert result.value is None


async def test_an_object_is_never_wrapped(house: House):
    result = await house.client.call_tool("weather", {"city": "Bern"}, output=Weather)
    assert result.value == Weather("Bern", 21.5)
    expected = {"city": "Bern", "degrees": 21.5}
    assert result.structured == (expected if house.has(Feature.STRUCTURED) else msgspec.UNSET)


async def test_an_object_that_looks_wrapped_is_not_unwrapped(house: House):
    assert (await house.client.call_tool("wrapped", output=dict[str, int])).value == {"result": 7}


async def test_an_object_or_nothing_is_what_the_schema_says_and_comes_back(house: House):
    await house.client.list_tools(fresh=True)  # so that the result is held against the schema
    for nothing in (True, False):
        result = await house.client.call_tool("perhaps", {"nothing": nothing}, output=Weather | None)
        assert result.value == (None if nothing else Weather("Bern", 21.5))
        assert result.structured == structured(house, None if nothing else {"city": "Bern", "degrees": 21.5})


async def test_an_object_or_a_number_is_what_the_schema_says_and_comes_back(house: House):
    await house.client.list_tools(fresh=True)
    for number in (True, False):
        result = await house.client.call_tool("mixed", {"number": number}, output=dict[str, int] | int)
        assert result.value == (7 if number else {"result": 7})
        assert result.structured == structured(house, 7 if number else {"result": 7})


async def test_a_text_stays_what_it_is(house: House):
    for text in ("007", "null", '{"a":1}', "línea\u2028"):
        assert (await house.client.call_tool("say", {"text": text}, output=str)).value == text


async def test_the_output_schema_is_published_where_there_is_one_and_fits_what_comes(house: House):
    tools = {tool.name: tool for tool in await house.client.list_tools()}
    schema = tools["add"].output_schema
    if not house.has(Feature.STRUCTURED):
        assert schema is None
    elif house.has(Feature.ANY_STRUCTURED):
        assert schema is not None
        assert schema["type"] == "integer"
    else:
        assert schema is not None
        assert schema["type"] == "object"
        assert schema["properties"]["result"]["type"] == "integer"
    result = await house.client.call_tool("add", {"a": 1, "b": 2})  # held against the listed schema by the client
    assert result.structured == structured(house, 3)


async def test_a_picture_is_a_picture_in_every_revision(house: House):
    (block,) = (await house.client.call_tool("picture")).content
    assert isinstance(block, Image)
    assert (block.data, block.mime_type) == (PIXEL, "image/png")
    assert block.annotations is not None
    assert (block.annotations.audience, block.annotations.priority) == (("user",), 0.5)


async def test_a_sound_is_a_sound_or_said_in_words(house: House):
    (block,) = (await house.client.call_tool("sound")).content
    if house.has(Feature.PROGRESS_MESSAGE):
        assert block == Audio(SOUND, "audio/wav")
    else:
        assert isinstance(block, Text)
        assert "audio/wav" in block.text


async def test_a_link_is_a_link_or_said_in_words(house: House):
    (block,) = (await house.client.call_tool("link")).content
    if house.has(Feature.STRUCTURED):
        assert isinstance(block, ResourceLink)
        assert (block.uri, block.title) == ("house://text", "A text")
        assert bool(block.icons) == house.has(Feature.URL_INPUT)
    else:
        assert isinstance(block, Text)
        assert "house://text" in block.text


async def test_content_says_of_itself_what_the_revision_has(house: House):
    text, parcel = (await house.client.call_tool("marked")).content
    assert isinstance(text, Text)
    assert isinstance(parcel, EmbeddedResource)
    for block in (text, parcel):
        assert block.annotations is not None
        assert block.annotations.audience == ("user",)
        assert (block.annotations.last_modified is not None) == house.has(Feature.STRUCTURED)
        assert (block.meta is not None) == house.has(Feature.STRUCTURED)
    assert (parcel.resource.meta is not None) == house.has(Feature.STRUCTURED)


async def test_a_resource_may_be_inside_of_a_result(house: House):
    text, parcel = (await house.client.call_tool("parcel")).content
    assert text == Text("a parcel")
    assert isinstance(parcel, EmbeddedResource)
    assert (parcel.resource.uri, parcel.resource.text) == ("house://inside", "inside")
