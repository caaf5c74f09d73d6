"""Lists, resources, templates, prompts and completion in every revision over every wire."""

import pytest

from mcprelay import Audio, EmbeddedResource, Image, ResourceLink, Text
from mcprelay.revisions import Feature
from tests.matrix.conftest import House
from tests.matrix.house import PAGE

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_all_pages_of_tools_come_with_what_the_revision_has(house: House):
    tools = await house.client.list_tools()
    names = [tool.name for tool in tools]
    assert len(names) == len(set(names)) > 4 * PAGE
    pages = len(house.tape.said("client", "tools/list"))
    assert pages == -(-len(names) // PAGE)
    add = tools[names.index("add")]
    assert add.description == "Add two numbers."
    assert add.input_schema["required"] == ["a", "b"]
    assert add.title == ("Addition" if house.has(Feature.STRUCTURED) else None)
    assert bool(add.icons) == house.has(Feature.URL_INPUT)
    assert (add.meta is not None) == house.has(Feature.STRUCTURED)
    if house.has(Feature.PROGRESS_MESSAGE):
        assert add.annotations is not None
        assert (add.annotations.read_only_hint, add.annotations.idempotent_hint) == (True, True)
    else:
        assert add.annotations is None


async def test_all_pages_of_resources_come_with_what_the_revision_has(house: House):
    resources = {resource.uri: resource for resource in await house.client.list_resources()}
    assert len(resources) == 3 + PAGE
    text = resources["house://text"]
    assert (text.name, text.mime_type) == ("text", "text/plain")
    assert text.title == ("A text" if house.has(Feature.STRUCTURED) else None)
    assert text.size == (9 if house.has(Feature.PROGRESS_MESSAGE) else None)
    assert bool(text.icons) == house.has(Feature.URL_INPUT)
    room = resources["house://room/0"]
    assert room.annotations is not None
    assert room.annotations.priority == 0.5


async def test_templates_are_listed_and_read(house: House):
    (template,) = await house.client.list_resource_templates()
    assert template.uri_template == "house://files/{name}"
    assert template.title == ("Files" if house.has(Feature.STRUCTURED) else None)
    (contents,) = (await house.client.read_resource("house://files/caf%C3%A9")).contents
    assert (contents.uri, contents.text) == ("house://files/caf%C3%A9", "file café")


async def test_resources_are_read_as_text_and_as_bytes(house: House):
    read = await house.client.read_resource("house://text", fresh=True)
    assert [(one.text, one.blob, one.mime_type) for one in read.contents] == [("some text", None, "text/plain")]
    read_bytes = await house.client.read_resource("house://bytes", fresh=True)
    assert [(one.text, one.blob) for one in read_bytes.contents] == [(None, b"\x00\xff")]
    assert (read.ttl_ms, read.cache_scope) == ((60_000, "private") if house.has(Feature.CACHE_HINTS) else (None, None))


async def test_a_fresh_resource_is_read_once_where_the_revision_has_freshness(house: House):
    await house.client.read_resource("house://text", fresh=True)
    await house.client.read_resource("house://text")
    asked = len(house.tape.said("client", "resources/read"))
    assert asked == (1 if house.has(Feature.CACHE_HINTS) else 2)


async def test_prompts_are_listed_with_what_the_revision_has(house: House):
    prompts = {prompt.name: prompt for prompt in await house.client.list_prompts()}
    review = prompts["review"]
    assert review.description == "Ask for a review."
    assert [(one.name, bool(one.required)) for one in review.arguments or ()] == [("language", True), ("focus", False)]
    assert review.title == ("Review" if house.has(Feature.STRUCTURED) else None)
    assert bool(review.icons) == house.has(Feature.URL_INPUT)


async def test_a_prompt_takes_its_arguments(house: House):
    prompt = await house.client.get_prompt("review", {"language": "php"})
    (message,) = prompt.messages
    assert (message.role, message.content) == ("user", Text("Review this php for all."))


async def test_a_prompt_shows_every_kind_of_content_that_the_revision_has(house: House):
    kinds = [type(message.content) for message in (await house.client.get_prompt("gallery")).messages]
    sound = Audio if house.has(Feature.PROGRESS_MESSAGE) else Text
    link = ResourceLink if house.has(Feature.STRUCTURED) else Text
    assert kinds == [Image, sound, EmbeddedResource, link]


async def test_arguments_of_prompts_and_templates_are_completed(house: House):
    assert (await house.client.complete("review", "language", "p")).values == ("python", "perl", "php")
    assert (await house.client.complete("house://files/{name}", "name", "al")).values == ("alpha", "album")


async def test_completion_knows_the_other_arguments_where_the_revision_says_them(house: House):
    context = {"language": "php"} if house.has(Feature.STRUCTURED) else None
    found = await house.client.complete("review", "focus", "", context=context)
    assert found.values == ("php-style" if house.has(Feature.STRUCTURED) else "any-style", "speed")
