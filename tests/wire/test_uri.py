import contextlib
from itertools import permutations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcprelay.wire.uri import Template, TemplateInvalid, check_uri

MATCHES = [
    # simple
    ("user://{id}/profile", "user://42/profile", {"id": "42"}),
    ("user://{id}/profile", "USER://42/profile", {"id": "42"}),
    ("user://{id}/profile", "user://John%20D%C3%B6e/profile", {"id": "John Döe"}),
    ("user://{id}/profile", "user://josé@example.com/profile", {"id": "josé@example.com"}),
    ("user://{id}/profile", "user://%2541/profile", {"id": "%41"}),
    ("user://{id}/profile", "user:///profile", None),
    ("user://{id}/profile", "user://a/b/profile", None),
    ("user://{id}/profile", "user://42/profile/", None),
    ("user://{id}/profile", "user://42/PROFILE", None),
    ("user://{id}/profile", "xuser://42/profile", None),
    ("user://{id}/profile", "user://42?x/profile", None),
    ("user://{id}/profile", "user://42/profile#x", None),
    ("user://{id}/profile", "user://%ff/profile", None),
    ("user://{id}/profile", "user://%4/profile", None),
    ("user://{id}/profile", "user://42/profile\n", None),
    ("map://{x},{y}", "map://1,2", {"x": "1", "y": "2"}),
    ("map://{x,y}", "map://1,2", {"x": "1", "y": "2"}),
    ("map://{x,y}", "map://1,2,3", None),
    ("map://{x,y}", "map://1%2C2,3", {"x": "1,2", "y": "3"}),
    ("map://{x*}", "map://1,2,3", {"x": ["1", "2", "3"]}),
    ("f:{name}.{ext}", "f:a.tar.gz", {"name": "a", "ext": "tar.gz"}),
    ("f:{name}.txt", "f:a.txt.txt", {"name": "a.txt"}),
    ("f:{y}-{m}-{d}/x", "f:2026-07-28/x", {"y": "2026", "m": "07", "d": "28"}),
    ("f:{a}-x{b}.y/{c}", "f:1-x2.y.y/3", {"a": "1", "b": "2.y", "c": "3"}),
    ("f:{a}/{a}", "f:1/1", {"a": "1"}),
    ("f:{a}/{a}", "f:1/2", None),
    ("f:{a:3}", "f:abc", {"a": "abc"}),
    ("f:{a:3}", "f:abcd", None),
    ("f:{a:2}", "f:%E6%97%A5%E6%9C%AC", {"a": "日本"}),
    ("f:{a:1}/{a}", "f:a/abc", {"a": "abc"}),
    ("f:{a:1}/{a}", "f:b/abc", None),
    ("f:{a:1}/{a:2}", "f:a/ab", {"a": "ab"}),
    ("f:{a*}/{a}", "f:x/x", None),
    # literals
    ("日:{x}", "日:1", {"x": "1"}),
    ("日:{x}", "%e6%97%A5:1", {"x": "1"}),
    ("f:a%2fb/{x}", "f:a%2Fb/1", {"x": "1"}),
    ("f:a.b", "f:a.b", {}),
    ("f:a.b", "f:axb", None),
    ("", "", {}),
    # reserved
    ("file:///{+path}", "file:///a/b%20c.txt", {"path": "a/b c.txt"}),
    ("file:///{+path}", "file:///a?b#c", {"path": "a?b#c"}),
    ("file:///{+path}", "file:///", None),
    ("file:{+path}", "file:/a", {"path": "/a"}),
    ("fetch://{+url}", "fetch://https://a.example/b?c=d#e", {"url": "https://a.example/b?c=d#e"}),
    ("f:{+path}/{file}", "f:a/b/c", {"path": "a/b", "file": "c"}),
    ("f:{+path}/{file}", "f:c", None),
    ("f:{+path}/{file}", "f:/c", None),
    ("f:{+path}/here", "f:/foo/bar/here", {"path": "/foo/bar"}),
    ("f:{+path}/here", "f:here/here/here", {"path": "here/here"}),
    ("f:{+path}-{n}.txt", "f:a-b/c-d.txt", {"path": "a-b/c", "n": "d"}),
    ("f:{+path}{.ext}", "f:a.b/c.tar.gz", {"path": "a.b/c.tar", "ext": "gz"}),
    ("f:{+path}{.ext}", "f:a.b/c", {"path": "a.b/c"}),
    ("f:{a}/{+path}/{b}/end", "f:1/2/3/4/end", {"a": "1", "path": "2/3", "b": "4"}),
    ("f:{a}-{+path}", "f:1-2-3/4", {"a": "1", "path": "2-3/4"}),
    ("f:{+path}日{x}", "f:a/%E6%97%a5日5", {"path": "a/日", "x": "5"}),
    ("f:{+path}%2f{x}", "f:a%2Fb", {"path": "a", "x": "b"}),
    ("f:{+path}/{x,y}", "f:a/b/1,2", {"path": "a/b", "x": "1", "y": "2"}),
    ("f:{+x,y}/here", "f:/a/b,1/here", {"x": "/a/b", "y": "1"}),
    ("f:{+x*}", "f:a,b/c", {"x": ["a", "b/c"]}),
    ("f:{+path}{?q}", "f:a/b?q=1", {"path": "a/b", "q": "1"}),
    ("f:{+path}{?q}", "f:a/b#c", None),
    ("f:{+path}{#frag}", "f:a?b#c", {"path": "a?b", "frag": "c"}),
    # labels
    ("f:x{.a}", "f:x.b.c", {"a": "b.c"}),
    ("f:x{.a}", "f:x", {}),
    ("f:x{.a}", "f:x.", None),
    ("f:x{.a,b}", "f:x.1.2", {"a": "1", "b": "2"}),
    ("f:x{.a,b}", "f:x.1", {"a": "1"}),
    ("f:x{.a}{.b}", "f:x.1.2", {"a": "1", "b": "2"}),
    ("f:x{.a*}", "f:x.1.2.3", {"a": ["1", "2", "3"]}),
    ("f:x{.a*}", "f:x", {}),
    ("f:{name}{.ext}", "f:a.tar.gz", {"name": "a", "ext": "tar.gz"}),
    ("f:{name}{.ext}", "f:a", {"name": "a"}),
    ("f:x{.a}-y", "f:x.1-y", {"a": "1"}),
    ("f:x{.a}-y", "f:x-y", {}),
    ("f:x{.a}-{b}", "f:x.1-2", {"a": "1", "b": "2"}),
    ("f:x{.a}.{b}/y", "f:x.1.2/y", {"a": "1", "b": "2"}),
    ("f:x{.a}.{b}./y", "f:x.2./y", {"b": "2"}),
    ("f:x{.a}/y", "f:x.1/y", {"a": "1"}),
    ("f:{a}-b{.c}", "f:1-b.2", {"a": "1", "c": "2"}),
    # path segments
    ("f:x{/a}", "f:x/1", {"a": "1"}),
    ("f:x{/a}", "f:x", {}),
    ("f:x{/a}", "f:x/", None),
    ("f:x{/a}", "f:x/1/2", None),
    ("f:x{/a,b}/end", "f:x/1/2/end", {"a": "1", "b": "2"}),
    ("f:x{/a,b}/end", "f:x/1/end", {"a": "1"}),
    ("f:x{/a,b}/end", "f:x/end", {}),
    ("f:x{/a,b}/end", "f:x/1/2/3/end", None),
    ("f:x{/a}{/b}", "f:x/1/2", {"a": "1", "b": "2"}),
    ("f:x{/a*}", "f:x/1/2%20", {"a": ["1", "2 "]}),
    ("f:x{/a*}", "f:x", {}),
    ("f:x{/a*}{;b}", "f:x/1/2;b=3", {"a": ["1", "2"], "b": "3"}),
    ("f:x{/a*}{.b}", "f:x/1/2.3", {"a": ["1", "2"], "b": "3"}),
    ("f:x{.a*}{;b}", "f:x.1.2;b=3", {"a": ["1", "2"], "b": "3"}),
    ("f:x{;a}{.b}", "f:x;a=1.2", {"a": "1", "b": "2"}),
    ("f:{x}-y{;a}", "f:1-y-y;a=2", {"x": "1-y", "a": "2"}),
    ("f:x{/a*}/end", "f:x/1/end/end", {"a": ["1", "end"]}),
    ("f:x{/a*}/end", "f:x/end", {}),
    ("f:x{/a}.json", "f:x/1.json", {"a": "1"}),
    ("f:x{/a}.json", "f:x.json", {}),
    ("f:x{/a}{.b}", "f:x/1.2", {"a": "1", "b": "2"}),
    ("f:{x}{/a}", "f:1/2", {"x": "1", "a": "2"}),
    ("f:{x}-y{/a}", "f:1-y-y/2", {"x": "1-y", "a": "2"}),
    # path parameters
    ("f:x{;a,b}", "f:x;a=1;b=2", {"a": "1", "b": "2"}),
    ("f:x{;a,b}", "f:x;b=2", {"b": "2"}),
    ("f:x{;a,b}/y", "f:x;b=2;a/y", {"a": "", "b": "2"}),
    ("f:x{;a}", "f:x;c=1", None),
    ("f:x{;a*}", "f:x;a=1;a=2", {"a": ["1", "2"]}),
    ("f:{x}{;a}", "f:1;a=2", {"x": "1", "a": "2"}),
    ("f:x{;a}{;b}", "f:x;b=1;a=2", {"a": "2", "b": "1"}),
    # query
    ("f:x{?q,n}", "f:x?q=1&n=2", {"q": "1", "n": "2"}),
    ("f:x{?q,n}", "f:x?n=2&q=1", {"q": "1", "n": "2"}),
    ("f:x{?q,n}", "f:x?n=2", {"n": "2"}),
    ("f:x{?q,n}", "f:x", {}),
    ("f:x{?q,n}", "f:x?", {}),
    ("f:x{?q,n}", "f:x?q=", {"q": ""}),
    ("f:x{?q,n}", "f:x?q", {"q": ""}),
    ("f:x{?q,n}", "f:x?q=a=b%26c+d/e?", {"q": "a=b&c+d/e?"}),
    ("f:x{?q,n}", "f:x?q=1&q=2", None),
    ("f:x{?q,n}", "f:x?other=1", None),
    ("f:x{?q,n}", "f:x?q=1&&n=2", None),
    ("f:x{?q,n}", "f:x?q=%ff", None),
    ("f:x{?q,n}", "f:x?q=1#f", None),
    ("f:x{?q*}", "f:x?q=1&q=2", {"q": ["1", "2"]}),
    ("f:x{?q*}", "f:x?q=1", {"q": ["1"]}),
    ("f:x{?q:2}", "f:x?q=ab", {"q": "ab"}),
    ("f:x{?q:2}", "f:x?q=abc", None),
    ("f:x{?a}{&b}", "f:x?b=2&a=1", {"a": "1", "b": "2"}),
    ("f:x{?a}{&b}", "f:x?b=2", {"b": "2"}),
    ("f:x{?a}{&b}", "f:x&b=2", None),
    ("f:x?fixed=yes{&a,b}", "f:x?fixed=yes&b=2&a=1", {"a": "1", "b": "2"}),
    ("f:x?fixed=yes{&a}", "f:x?fixed=yes", {}),
    ("f:x?fixed=yes{&a}", "f:x?a=1&fixed=yes", None),
    ("f:{id}?format={fmt}", "f:5?format=json", {"id": "5", "fmt": "json"}),
    ("f:{id}?format={fmt}", "f:5?format=json&x=1", None),
    ("f:?{x,y}", "f:?1,2", {"x": "1", "y": "2"}),
    ("f:x?ref={+url}", "f:x?ref=http://a/?b&c", {"url": "http://a/?b&c"}),
    ("f:x?ref={+url}&n={n}", "f:x?ref=http://a/?n=1&n=2&n=3", {"url": "http://a/?n=1&n=2", "n": "3"}),
    ("f:x?ref={+url}&n={n}{&a}", "f:x?ref=http://a/?b&n=3&a=4", {"url": "http://a/?b", "n": "3", "a": "4"}),
    ("f:x?ref={+u}-&n={n}{&a}", "f:x?ref=1-2-&n=3", {"u": "1-2", "n": "3"}),
    ("f:x?ref={+u}&n={+n}{&a}", "f:x?ref=1&n=2&a=3", {"u": "1", "n": "2", "a": "3"}),
    ("f:x?ref={+url}{&a}", "f:x?ref=http://a/?b&a=1", {"url": "http://a/?b", "a": "1"}),
    # fragment
    ("f:x{#f}", "f:x#a/b?c", {"f": "a/b?c"}),
    ("f:x{#f}", "f:x#", {"f": ""}),
    ("f:x{#f}", "f:x", {}),
    ("f:x{#f,g}", "f:x#1,2", {"f": "1", "g": "2"}),
    ("f:x{#f,g}", "f:x#1", {"f": "1"}),
    ("f:x{#f,g}", "f:x#1,2,3", None),
    ("f:x{/a};{;b}", "f:x;;b=1", {"b": "1"}),
    ("f:x{/a};{;b}", "f:x/1;;b=1", {"a": "1", "b": "1"}),
    ("f:{x}-{/a};y", "f:1-;y", {"x": "1"}),
    ("f:x{/a,b}{.c}/y", "f:x/1/y", {"a": "1"}),
    ("f:{x}{/a}{;b}", "f:1;b=2", {"x": "1", "b": "2"}),
    ("f:x{#f*}", "f:x#1,2", {"f": ["1", "2"]}),
    ("f:x#s-{f}", "f:x#s-1", {"f": "1"}),
    ("f:x{?q}{#f}", "f:x?q=1#2", {"q": "1", "f": "2"}),
    ("f:x{?q}#s", "f:x?q=1#s", {"q": "1"}),
]


@pytest.mark.parametrize(("template", "uri", "values"), MATCHES)
def test_a_uri_is_read_back_to_its_values(template, uri, values):
    assert Template(template).match(uri) == values


@pytest.mark.parametrize(
    "value",
    [
        ".",
        "..",
        "%2e",
        "%2E%2e",
        ".%2e",
        "a%2Fb",
        "a%2fb",
        "..%2F..",
        "%2F",
        "a%5Cb",
        "a\\b",
        "%00",
        "a%00",
        "\0",
        "..%5c",
        "%c0%ae%c0%ae",
    ],
)
@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("f:x/{a}", "f:x/VALUE"),
        ("f:x/{a}/y", "f:x/VALUE/y"),
        ("f:x/{a,b}", "f:x/VALUE,1"),
        ("f:x/{a*}", "f:x/1,VALUE"),
        ("f:x/{a:9}", "f:x/VALUE"),
        ("f:x{/a}", "f:x/VALUE"),
        ("f:x{/a*}", "f:x/1/VALUE"),
        ("f:x{.a}", "f:x.VALUE"),
        ("f:x{;a}", "f:x;a=VALUE"),
        ("f:x/{+b}/{a}", "f:x/1/VALUE"),
    ],
)
def test_a_segment_never_climbs_nor_hides_a_separator(template, uri, value):
    assert Template(template).match(uri.replace("VALUE", "fine"))
    assert Template(template).match(uri.replace("VALUE", value)) is None


@pytest.mark.parametrize(
    "path",
    [
        "..",
        ".",
        "../etc/passwd",
        "a/../b",
        "a/..",
        "a/./b",
        "a/%2e%2e/b",
        "a%2F..%2Fb",
        "..%5cb",
        "a\\..\\b",
        "a\\..",
        "/etc/passwd",
        "%2Fetc/passwd",
        "\\\\host\\share",
        "a%00.txt",
        "a\0",
    ],
)
def test_a_path_never_climbs_nor_begins_at_the_root(path):
    assert Template("file:///{+path}").match(f"file:///{path}") is None
    assert Template("file:///{+path}/x").match(f"file:///{path}/x") is None
    assert Template("file:///{+path}/{x}").match(f"file:///{path}/x") is None


@pytest.mark.parametrize("value", ["..", "../x", "a/../b", "a\\..\\b", "%2e%2e%2fetc", "%00", "..%2f"])
def test_a_query_parameter_does_not_climb_either(value):
    assert Template("f:x{?a}").match(f"f:x?a={value}") is None
    assert Template("f:x?a={a}").match(f"f:x?a={value}") is None
    assert Template("f:x?a={+a}").match(f"f:x?a={value}") is None
    assert Template("f:x{#a}").match(f"f:x#{value}") is None


@pytest.mark.parametrize("value", ["a..b", "...", "..a", ".hidden", "a.", "a/b..c"])
def test_dots_that_do_not_climb_are_text(value):
    assert Template("file:///{+path}").match(f"file:///{value}") == {"path": value}
    if "/" not in value:
        assert Template("f:x/{a}").match(f"f:x/{value}") == {"a": value}


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{a}{b}", "nothing separates {a} from {b}"),
        ("{a}{+b}", "nothing separates {a} from"),
        ("{+a}{b}", "nothing separates {b} from"),
        ("{+a}{+b}", "{+a} and {+b} can both hold '/'"),
        ("{+a}/{x}/{+b}", "{+a} and {+b} can both hold '/'"),
        ("{/a}{b}", "nothing separates {/a} from {b}"),
        ("x{/a}{+b}", "nothing separates {/a} from"),
        ("{+a}{/b}", "nothing tells where {+a} ends and {/b} begins"),
        ("{+a}{.b,c}", "nothing tells where {+a} ends"),
        ("{+a}{.b*}", "nothing tells where {+a} ends"),
        ("{+a,b}/{c}", "nothing tells where {+a,b} ends"),
        ("{+a,b*}", "mixes a list"),
        ("{a,b*}", "mixes a list"),
        ("{/a*,b}", "mixes a list"),
        ("{.a,b*}", "mixes a list"),
        ("x{.a,b}-y", "nothing tells where {.a,b} ends and '-y' begins"),
        ("x{.a*}-y", "nothing tells where {.a*} ends"),
        ("x{;a}y", "nothing tells where {;a} ends"),
        ("x{/a*}/y/{b}", "{/a*} can take any number of segments"),
        ("{a}{.b}-y", "{a} could hold '-y' where {.b} is missing"),
        ("{a}{/b}-y", "{a} could hold '-y' where {/b} is missing"),
        ("x{/a}{.b}-y", "{/a} could hold '-y' where {.b} is missing"),
        ("x{.a}.{+b}.{c}", "{.a} may be missing, and then nothing tells where {+b} begins"),
        ("x{;a}{.b}{;c}", "{;a} could hold the parameters of a later expression"),
        ("x{/a*}{.b}/y", "{/a*} can take any number of segments"),
        ("x{/a}/y{/b}/z", "{/a} and {/b} may both be missing"),
        ("x{&a}", "{&a} is not read back where it stands"),
        ("x?a{/b}", "{/b} is not read back where it stands"),
        ("x#a{.b}", "{.b} is not read back where it stands"),
        ("x{?a}y", "could be another parameter"),
        ("x{?a}{b}", "could be another parameter"),
        ("x{?a}{?b}", "{?b} begins what has begun before"),
        ("x?a=1{?b}", "{?b} begins what has begun before"),
        ("x#y{#b}", "{#b} begins what has begun before"),
        ("x#y{?b}", "{?b} begins what has begun before"),
        ("x{#a}y", "could be part of it"),
        ("x{#a,b*}", "mixes a list"),
        ("x#a#{b}", "has two"),
        ("{a*},{b}", "{a*} is a list, so nothing tells where it ends"),
    ],
)
def test_a_template_that_cannot_be_read_back_says_why(template, why):
    ambiguous = Template(template)
    assert why in ambiguous.ambiguity
    assert ambiguous.check() is not None
    with pytest.raises(TemplateInvalid) as caught:
        ambiguous.match("x")
    assert why in str(caught.value)


# --- expansion and reading are inverse

TEXT = st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=8)
SEGMENT = TEXT.filter(lambda text: text not in {".", ".."} and not set(text) & set("/\\\0"))
PATH = st.lists(SEGMENT.filter(lambda text: "%" not in text), min_size=1, max_size=4).map("/".join)
PARAMETER = st.text(alphabet=st.characters(codec="utf-8"), max_size=8).filter(
    lambda text: ".." not in text and "\0" not in text
)


@given(SEGMENT, SEGMENT)
def test_segments_are_read_back_as_they_were(a, b):
    for text in ("s://{a}/{b}", "s://{a,b}", "s://x{/a,b}", "s://{a}/x/{b}/y", "s://x{/a}/y{;b}", "s://{a}/{b}{#c}"):
        template = Template(text)
        assert template.match(template.expand({"a": a, "b": b})) == {"a": a, "b": b}, text


@given(SEGMENT.filter(lambda text: "." not in text and "-" not in text), SEGMENT)
def test_variables_in_one_segment_are_read_back_where_their_separator_is_not_in_the_first(a, b):
    for text in ("s://{a}.{b}", "s://{a}-{b}/x", "s://{a}{.b}", "s://x{.a}/{b}", "s://{a}-{b}.end"):
        template = Template(text)
        assert template.match(template.expand({"a": a, "b": b})) == {"a": a, "b": b}, text


@given(PATH.filter(lambda path: not {"?", "#"} & set(path)), SEGMENT, PARAMETER)
def test_paths_are_read_back_as_they_were(path, name, parameter):
    values = {"path": path, "name": name, "q": parameter}
    for text in ("s:///{+path}/{name}{?q}", "s:///{name}/{+path}{?q}", "s:///{name}/{+path}/x{?q}"):
        template = Template(text)
        assert template.match(template.expand(values)) == values, text


@given(st.lists(SEGMENT, min_size=1, max_size=4))
def test_lists_are_read_back_as_they_were(items):
    for text in ("s://x{/a*}", "s://x{/a*}/end", "s://{a*}", "s://x{?a*}", "s://x{;a*}", "s://x?y{&a*}"):
        template = Template(text)
        assert template.match(template.expand({"a": items})) == {"a": items}, text


@given(st.dictionaries(st.sampled_from("abc"), PARAMETER))
def test_parameters_are_read_back_in_any_order(values):
    template = Template("s://x{?a,b,c}")
    uri = template.expand(values)
    assert template.match(uri) == values
    head, _, query = uri.partition("?")
    for order in permutations(query.split("&")):
        assert template.match(f"{head}?{'&'.join(order)}") == values


MODIFIER = st.sampled_from(["", "", "", "*", ":3"])
OPERATOR = st.sampled_from(["", "", "", "+", "#", ".", "/", ";", "?", "&"])
LITERAL = st.sampled_from(["-", ".", "/", "aa", "x", "?", "#", "%41", ";", ",", "ab", "a-", "/x", "&y="])
WORD = st.sampled_from(["k", "kl", "é", "m n", "kk", "lk"])


@st.composite
def expressions(draw):
    names = [f"v{draw(st.integers(0, 10**6))}{draw(MODIFIER)}" for _ in range(draw(st.integers(1, 3)))]
    return "{" + draw(OPERATOR) + ",".join(names) + "}"


@given(st.lists(LITERAL | expressions(), max_size=7).map("".join), st.data())
def test_every_template_that_is_not_ambiguous_reads_back_what_it_expands(text, data):
    template = Template(text)
    assume(template.ambiguity is None and len(template.variables) == text.count("v"))
    words = st.lists(WORD, min_size=1, max_size=3)
    values = {name: data.draw(words if f"{name}*" in text else WORD) for name in template.variables}
    assert template.match(template.expand(values)) == values


@given(st.lists(LITERAL | expressions(), max_size=7).map("".join), st.data())
def test_with_variables_missing_what_is_read_back_expands_to_the_same_uri(text, data):
    template = Template(text)
    assume(template.ambiguity is None and len(template.variables) == text.count("v"))
    assume(":3" not in text)  # which of several readings fits a length is not tried
    assume(not ("{?" in text and "{&" in text))  # without the first the second is no query, though it expands
    words = st.lists(WORD, min_size=1, max_size=3)
    values = {name: data.draw(words if f"{name}*" in text else WORD) for name in template.variables}
    for name in set(values) - template.required:
        if data.draw(st.booleans()):
            del values[name]
    uri = template.expand(values)
    found = template.match(uri)
    assert found is not None
    assert sorted(template.expand(found)) == sorted(uri)


@given(st.text(alphabet="{}ab,.*:3+#/;?&=%4-", max_size=25), st.text(alphabet="ab,.:3+#/;?&=%4-", max_size=25))
def test_whatever_is_read_back_has_the_variables_that_every_uri_has(text, uri):
    with contextlib.suppress(TemplateInvalid):
        template = Template(text)
        values = template.match(uri)
        if values is not None:
            assert set(template.required) <= set(values) <= set(template.variables)


# --- a hostile URI costs no more than its length

HOSTILE_TEMPLATES = [
    "{a}-{b}-{c}-{d}-{e}.txt",
    "{a}.{b}.{c}.{d}.{e}.{f}x",
    "{a}aa{b}aa{c}aa{d}b",
    "{+a}-{b}-{c}.txt",
    "{+a}aa{b}aa{c}b",
    "x{/a,b,c,d,e,f,g,h}/y/{i}-{j}-{k}b",
    "{a}{.b}{/c}{;d}{?e}{#f}",
    "x{/a*}/y",
    "x{.a*}/y",
    "x{.a}aa{b}aa{c}b",
    "{a,b,c,d,e,f}",
    "{+a,b,c,d}b",
    "{+a}aab",
    "x{?a,b*}",
    "x?{a}-{b}-{c}b{&d*}",
    "x#{a}-{b}-{c}b",
]
HOSTILE_PIECES = [
    "a",
    "-",
    ".",
    "/",
    ",",
    ";",
    "&",
    "?",
    "#",
    "%41",
    "%",
    "x/",
    "a-",
    "-a.",
    "/a",
    "&b=",
    ";d",
    "aa",
    "..",
    "日",
]


@pytest.mark.parametrize("text", HOSTILE_TEMPLATES)
def test_a_hostile_uri_costs_no_more_than_its_length(text):
    template = Template(text)
    assert template.ambiguity is None
    for piece in HOSTILE_PIECES:
        filler = piece * (100_000 // len(piece))
        for uri in (filler, f"x{filler}", f"x/{filler}", f"x?{filler}", f"x#{filler}", f"{filler}!"):
            matched = template.match(uri)
            assert matched is None or set(matched) <= set(template.variables)


# --- the most specific template wins


@pytest.mark.parametrize(
    "ordered",
    [
        ["u://{id}/profile", "u://{id}/{section}", "u://{id}{/section}", "u://{+rest}"],
        [
            "f:///docs/index",
            "f:///docs/{name}.md",
            "f:///docs/{name}",
            "f:///docs{/name}",
            "f:///docs/{+path}",
            "f:///{a}/{b}",
            "f:///{+path}",
        ],
        ["s://x", "s://x{?q}", "s://x{?q,lang}"],
        ["s://x/{a}-{b}", "s://x/{a}", "s://x{/a*}"],
        ["s://x/{+p}/info", "s://x/{+p}"],
        ["s://x/{name}{.ext}", "s://x{/a}"],
        ["s://{a}?format={f}", "s://{a}"],
        ["s://x.y", "s://x{.y}"],
    ],
)
def test_the_template_that_says_more_is_greater(ordered):
    templates = [Template(text) for text in ordered]
    for mixed in (templates, templates[::-1]):
        assert sorted(mixed, key=lambda template: template.specificity, reverse=True) == templates


# --- RFC 3986


@pytest.mark.parametrize(
    "uri",
    [
        "config:",
        "config://calculator/settings",
        "file:///a/b%20c",
        "urn:isbn:0451450523",
        "mailto:a@b.example",
        "https://user:pw@a.example:8443/b;c=1,2?d=e/f?g#h/i?",
        "http://[2001:db8::1]:80/",
        "http://[v1.fe80::a+en1]/",
        "ftp://ftp.is.co.za/rfc/rfc1808.txt",
        "tel:+1-816-555-1212",
        "a+b-c.1://x:",
        "x://%41%ff/",
        "x:///a//b",
        "x://a_b.c!$&'()*+,;=/",
    ],
)
def test_a_uri_is_a_uri(uri):
    assert check_uri(uri) is None


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("", "'' does not begin with a scheme"),
        ("profile", "does not begin with a scheme"),
        ("/a/b", "does not begin with a scheme"),
        ("//a/b", "does not begin with a scheme"),
        ("1a://b", "does not begin with a scheme"),
        ("a_b://c", "does not begin with a scheme"),
        ("://a", "does not begin with a scheme"),
        ("日:x", "does not begin with a scheme"),
        ("a://b c", "' ' at position 5 must be written %20"),
        ("a://b/é", "'é' at position 6 must be written %C3%A9"),
        ("a://b/{x}", "'{' at position 6 must be written %7B"),
        ("a://b\\c", "at position 5 must be written %5C"),
        ("a://b\n", "at position 5 must be written %0A"),
        ('a://"', "must be written %22"),
        ("a:\ud800", "must be written %ED%A0%80"),
        ("a://b/%4", "'%' at position 6 is not followed by two hexadecimal digits"),
        ("a://b/100%", "is not followed by two hexadecimal digits"),
        ("a://b#c#d", "a second '#' at position 7"),
        ("a://b:port/", "'b:port' is not a host, with a user and a port or without, at position 4"),
        ("a://b@c@d/", "is not a host"),
        ("a://[::1/", "is not a host"),
        ("a://[::1]x/", "is not a host"),
        ("a://[::zz]/", "is not a host"),
        ("a://[:::]/", "'[:::]' is not an IPv6 address at position 4"),
        ("a://b/[c]", "'[' at position 6"),
        ("a:b]", "']' at position 3"),
        ("a://b?c[0]=1", "'[' at position 7"),
    ],
)
def test_what_is_no_uri_is_told_with_the_place(uri, why):
    assert why in check_uri(uri)


@given(st.text())
def test_any_text_is_a_uri_or_not(text):
    reason = check_uri(text)
    assert reason is None or reason
    if reason is None:
        assert text.isascii()


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("user://{id}/profile", None),
        ("{+url}", None),
        ("{scheme}://x{?q}", None),
        ("{id}", "does not begin with a scheme"),
        ("users/{id}", "does not begin with a scheme"),
        ("a://b[{x}]", "is not a host"),
        ("a:#b{#c}", "a second '#'"),
        ("a:#b#{c}", "a second '#'"),
        ("a://{x}{y}", "nothing separates {x} from {y}"),
    ],
)
def test_a_template_of_resources_must_make_uris_and_be_read_back(template, why):
    reason = Template(template).check()
    assert reason is None if why is None else why in reason
