"""The examples of RFC 6570, sections 1.2 and 3.2, and what the grammar refuses."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.errors import DefinitionError
from mcprelay.wire.uri import Template, TemplateInvalid

VALUES = {
    "count": ["one", "two", "three"],
    "dom": ["example", "com"],
    "dub": "me/too",
    "hello": "Hello World!",
    "half": "50%",
    "var": "value",
    "who": "fred",
    "base": "http://example.com/home/",
    "path": "/foo/bar",
    "list": ["red", "green", "blue"],
    "keys": {"semi": ";", "dot": ".", "comma": ","},
    "v": 6,
    "x": 1024,
    "y": 768,
    "empty": "",
    "empty_keys": {},
    "undef": None,
}

EXAMPLES = """
# level 1 and 2
{var} | value
{hello} | Hello%20World%21
{+var} | value
{+hello} | Hello%20World!
{+path}/here | /foo/bar/here
here?ref={+path} | here?ref=/foo/bar
X{#var} | X#value
X{#hello} | X#Hello%20World!
# level 3
map?{x,y} | map?1024,768
{x,hello,y} | 1024,Hello%20World%21,768
{+x,hello,y} | 1024,Hello%20World!,768
{+path,x}/here | /foo/bar,1024/here
{#x,hello,y} | #1024,Hello%20World!,768
{#path,x}/here | #/foo/bar,1024/here
X{.var} | X.value
X{.x,y} | X.1024.768
{/var} | /value
{/var,x}/here | /value/1024/here
{;x,y} | ;x=1024;y=768
{;x,y,empty} | ;x=1024;y=768;empty
{?x,y} | ?x=1024&y=768
{?x,y,empty} | ?x=1024&y=768&empty=
?fixed=yes{&x} | ?fixed=yes&x=1024
{&x,y,empty} | &x=1024&y=768&empty=
# level 4
{var:3} | val
{var:30} | value
{list} | red,green,blue
{list*} | red,green,blue
{keys} | semi,%3B,dot,.,comma,%2C
{keys*} | semi=%3B,dot=.,comma=%2C
{+path:6}/here | /foo/b/here
{+list} | red,green,blue
{+list*} | red,green,blue
{+keys} | semi,;,dot,.,comma,,
{+keys*} | semi=;,dot=.,comma=,
{#path:6}/here | #/foo/b/here
{#list} | #red,green,blue
{#list*} | #red,green,blue
{#keys} | #semi,;,dot,.,comma,,
{#keys*} | #semi=;,dot=.,comma=,
X{.var:3} | X.val
X{.list} | X.red,green,blue
X{.list*} | X.red.green.blue
X{.keys} | X.semi,%3B,dot,.,comma,%2C
X{.keys*} | X.semi=%3B.dot=..comma=%2C
{/var:1,var} | /v/value
{/list} | /red,green,blue
{/list*} | /red/green/blue
{/list*,path:4} | /red/green/blue/%2Ffoo
{/keys} | /semi,%3B,dot,.,comma,%2C
{/keys*} | /semi=%3B/dot=./comma=%2C
{;hello:5} | ;hello=Hello
{;list} | ;list=red,green,blue
{;list*} | ;list=red;list=green;list=blue
{;keys} | ;keys=semi,%3B,dot,.,comma,%2C
{;keys*} | ;semi=%3B;dot=.;comma=%2C
{?var:3} | ?var=val
{?list} | ?list=red,green,blue
{?list*} | ?list=red&list=green&list=blue
{?keys} | ?keys=semi,%3B,dot,.,comma,%2C
{?keys*} | ?semi=%3B&dot=.&comma=%2C
{&var:3} | &var=val
{&list} | &list=red,green,blue
{&list*} | &list=red&list=green&list=blue
{&keys} | &keys=semi,%3B,dot,.,comma,%2C
{&keys*} | &semi=%3B&dot=.&comma=%2C
# 3.2.1
{count} | one,two,three
{count*} | one,two,three
{/count} | /one,two,three
{/count*} | /one/two/three
{;count} | ;count=one,two,three
{;count*} | ;count=one;count=two;count=three
{?count} | ?count=one,two,three
{?count*} | ?count=one&count=two&count=three
{&count*} | &count=one&count=two&count=three
# 3.2.2 to 3.2.9
{half} | 50%25
O{empty}X | OX
O{undef}X | OX
{?x,empty} | ?x=1024&empty=
?{x,empty} | ?1024,
?{x,undef} | ?1024
?{undef,y} | ?768
{+half} | 50%25
{base}index | http%3A%2F%2Fexample.com%2Fhome%2Findex
{+base}index | http://example.com/home/index
O{+empty}X | OX
O{+undef}X | OX
up{+path}{var}/here | up/foo/barvalue/here
{#half} | #50%25
foo{#empty} | foo#
foo{#undef} | foo
{.who} | .fred
{.who,who} | .fred.fred
{.half,who} | .50%25.fred
www{.dom*} | www.example.com
X{.empty} | X.
X{.undef} | X
X{.empty_keys} | X
X{.empty_keys*} | X
{/who} | /fred
{/who,who} | /fred/fred
{/half,who} | /50%25/fred
{/who,dub} | /fred/me%2Ftoo
{/var,empty} | /value/
{/var,undef} | /value
{;who} | ;who=fred
{;half} | ;half=50%25
{;empty} | ;empty
{;v,empty,who} | ;v=6;empty;who=fred
{;v,bar,who} | ;v=6;who=fred
{;x,y,undef} | ;x=1024;y=768
{?who} | ?who=fred
{?half} | ?half=50%25
{?x,y,undef} | ?x=1024&y=768
{&who} | &who=fred
?fixed=yes{&x} | ?fixed=yes&x=1024
{&x,y,undef} | &x=1024&y=768
{undef} |
{?undef,empty_keys*} |
"""

TABLE = [
    tuple(part.strip() for part in line.split(" |", 1))
    for line in EXAMPLES.strip().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(("template", "expansion"), TABLE)
def test_the_examples_of_the_rfc_expand_as_it_says(template, expansion):
    assert Template(template).expand(VALUES) == expansion


@pytest.mark.parametrize(
    ("template", "values", "expansion"),
    [
        ("{a}{?b}", {"a": True, "b": False}, "true?b=false"),
        ("{a}", {"a": 1.5}, "1.5"),
        ("{a}", {"a": -7}, "-7"),
        ("{?a*}", {"a": ["x", None, ""]}, "?a=x&a="),
        ("{;a*}", {"a": {"x": "", "y": None}}, ";x"),
        ("{?a}", {"a": []}, ""),
        ("{?a}", {"a": [None]}, ""),
        ("{?a}", {"a": [""]}, "?a="),
        ("{;a}", {"a": [""]}, ";a"),
        ("é{a}", {"a": "é"}, "%C3%A9%C3%A9"),
        ("{+a:2}", {"a": "x%20y"}, "x%20"),
        ("{a:2}", {"a": "日本語"}, "%E6%97%A5%E6%9C%AC"),
        ("{a.b}{_c}{%41}", {"a.b": 1, "_c": 2, "%41": 3}, "123"),
        ("no variables", {}, None),
    ],
)
def test_values_of_every_kind_expand(template, values, expansion):
    if expansion is None:
        with pytest.raises(TemplateInvalid):
            Template(template)
    else:
        assert Template(template).expand(values) == expansion


def test_a_prefix_of_a_list_is_a_mistake():
    with pytest.raises(ValueError, match="a prefix is taken of a text"):
        Template("{list:3}").expand(VALUES)


@pytest.mark.parametrize(
    ("template", "position", "why"),
    [
        ("a{b", 1, "never closed"),
        ("a}b", 1, "a brace that nothing opened"),
        ("a{b{c}}", 1, "a brace inside of braces"),
        ("{}", 1, "a variable's name is missing"),
        ("{?}", 2, "a variable's name is missing"),
        ("x{a,}", 4, "a variable's name is missing"),
        ("{a,b c}", 3, "'b c' is not a variable"),
        ("{a.}", 1, "'a.' is not a variable"),
        ("{.a..b}", 2, "is not a variable"),
        ("{a-b}", 1, "'a-b' is not a variable"),
        ("{é}", 1, "is not a variable"),
        ("{a:0}", 1, "is not a variable"),
        ("{a:10000}", 1, "is not a variable"),
        ("{a:}", 1, "is not a variable"),
        ("{a*:3}", 1, "is not a variable"),
        ("{a**}", 1, "is not a variable"),
        ("{%4}", 1, "is not a variable"),
        ("{=a}", 1, "the operator '=' is reserved"),
        ("{!a}", 1, "the operator '!' is reserved"),
        ("{@a}", 1, "the operator '@' is reserved"),
        ("{|a}", 1, "the operator '|' is reserved"),
        ("{,a}", 1, "the operator ',' is reserved"),
        ("{-a}", 1, "is not a variable"),
        ("a b", 1, "' ', which must be percent-encoded"),
        ("a%zz", 1, "'%', which must be percent-encoded"),
        ("{a}%4", 3, "'%'"),
        ('"', 0, "which must be percent-encoded"),
        ("a<", 1, "'<'"),
        ("a\\b", 1, "which must be percent-encoded"),
        ("a\x00", 1, "which must be percent-encoded"),
    ],
)
def test_a_template_that_breaks_the_grammar_says_where(template, position, why):
    with pytest.raises(TemplateInvalid) as caught:
        Template(template)
    assert isinstance(caught.value, DefinitionError)
    assert (caught.value.template, caught.value.position) == (template, position)
    assert why in str(caught.value)


@given(st.text(alphabet="{}ab,.*:3+#/;?&=%4é -"))
def test_any_text_is_a_template_or_is_refused(text):
    with contextlib.suppress(TemplateInvalid):
        template = Template(text)
        assert template.expand({}).isascii()
        assert template.ambiguity is None or template.ambiguity


def test_variables_are_named_once_in_order():
    template = Template("{b}{/a,b:1}{?c*}{#d}")
    assert template.variables == ("b", "a", "c", "d")
    assert template.required == {"b"}


def test_templates_are_equal_by_their_text():
    assert Template("{a}") == Template("{a}")
    assert len({Template("{a}"), Template("{a}"), Template("{b}")}) == 2
    assert Template("{a}") != "{a}"
    assert repr(Template("{a}")) == "Template('{a}')"
