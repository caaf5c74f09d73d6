"""What may differ between the recorded answers of the PHP examples and those of ours, each rule with its reason.

Nothing else may: whatever no rule takes away must be equal.
"""

import json
import re

EMPTY = {
    "tools/list": {"tools": []},
    "prompts/list": {"prompts": []},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
}


def normalize(case, answer, error=None):
    """The expected result and the answer (or the error) as two values that must be equal.

    | rule | reason |
    |---|---|
    | `offered` | PHP answers `[]` for a kind that it has nothing of; we declare no such capability, and the method is |
    |           | unknown then |
    | `readable` | PHP prints JSON inside texts over several lines, and 5.0 as 5; the value is what counts |
    | `unstamped` | the fixtures name what differs from run to run: times, generated ids |
    | `unspoken` | PHP sends `isError: false`, which is what its absence means |
    | `closed` | we refuse unknown arguments, and publish `additionalProperties: false` for it; PHP lets them pass |
    | `nullable` | PHP writes `type: [null, string]`, in no fixed order; we write `anyOf` with null |
    | `inferred` | we make output schemas and structured content from return types, and describe a prompt's result by |
    |            | the prompt; PHP does so for what returns arrays, or not at all |
    | `page` | the page of the weather app is each side's own; what it says to its host must be the same |
    """
    expected = case["expected"]
    if error is not None:
        answer = offered(case["method"], error)
    rules = case.get("normalize", ())
    expected, answer = (unstamped(rules, everywhere(readable, side)) for side in (expected, answer))
    for rule in (nullable, closed, unspoken, page):
        expected, answer = everywhere(rule, expected), everywhere(rule, answer)
    return expected, inferred(expected, answer)


def unstamped(rules, value):
    text = json.dumps(value)
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text)
    return json.loads(text)


def offered(method, error):
    if error.code == -32601 and "this server has no" in str(error):
        return EMPTY[method]
    raise error


def everywhere(rule, value):
    """A rule, applied to every object from the inside out."""
    if isinstance(value, list):
        return [everywhere(rule, item) for item in value]
    if isinstance(value, dict):
        return rule({key: everywhere(rule, item) for key, item in value.items()})
    return value


def readable(value):
    try:
        plain = json.loads(value["text"], parse_float=shortest)
    except (KeyError, TypeError, ValueError):
        return value
    return {**value, "text": json.dumps(plain, indent=4)}


def shortest(digits):
    number = float(digits)
    return int(number) if number.is_integer() else number


def unspoken(value):
    return {key: item for key, item in value.items() if not (key == "isError" and item is False)}


def closed(value):
    return {key: item for key, item in value.items() if not (key == "additionalProperties" and item is False)}


def nullable(value):
    arms = value.get("anyOf")
    if isinstance(arms, list) and {"type": "null"} in arms and len(arms) == 2:
        (other,) = (arm for arm in arms if arm != {"type": "null"})
        rest = {key: item for key, item in value.items() if key != "anyOf"}
        return {**rest, **other, "type": sorted([other["type"], "null"])}
    if isinstance(value.get("type"), list):
        return {**value, "type": sorted(value["type"])}
    return value


def inferred(expected, answer):
    for key in ("structuredContent", "description"):
        if key in answer and key not in expected:
            answer = {name: item for name, item in answer.items() if name != key}
    if "tools" in answer:
        silent = {tool["name"] for tool in expected["tools"] if "outputSchema" not in tool}
        answer = {**answer, "tools": [without_output(tool, silent) for tool in answer["tools"]]}
    return answer


def without_output(tool, names):
    return {key: item for key, item in tool.items() if key != "outputSchema" or tool["name"] not in names}


def page(value):
    text = value.get("text")
    if not isinstance(text, str) or not text.startswith("<!DOCTYPE html>"):
        return value
    return {
        **value,
        "text": {
            "title": re.search("<title>(.*)</title>", text)[1],
            "says": sorted(set(re.findall(r"(?:ui|tools)/[a-z/-]+", text))),
            "calls": sorted(set(re.findall(r"""name: ['"](get_\w+)""", text))),
        },
    }
