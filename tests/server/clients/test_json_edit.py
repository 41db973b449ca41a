"""Edits of JSON text: where a member lands, and that nothing else moves."""

import json
import random
import re
from typing import Any, cast

import pytest

from kopt.server.clients.json_edit import (
    MalformedText,
    is_object,
    read_json,
    set_json,
)

SERVER = {"command": "/k", "args": ["serve"]}


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("{}", '{\n  "t": {\n    "k": 1\n  }\n}'),
        ("{ }\n", '{\n  "t": {\n    "k": 1\n  }\n}\n'),
        ('{"t": {}}', '{"t": {\n  "k": 1\n}}'),
        ('{"a": 2}', '{"a": 2, "t": {"k": 1}}'),
        ('{"a": 2,}', '{"a": 2, "t": {"k": 1},}'),
        ('{\n\t"a": 2\n}', '{\n\t"a": 2,\n\t"t": {\n\t\t"k": 1\n\t}\n}'),
        ('{\n    "t": {"a": 2}\n}', '{\n    "t": {"a": 2, "k": 1}\n}'),
        ('{"t": {\n  "a": 2 // why\n}}', '{"t": {\n  "a": 2, // why\n  "k": 1\n}}'),
        ('{"t": {"a": 2 // why\n}}', '{"t": {"a": 2, // why\n  "k": 1\n}}'),
        ("{\n  // none yet\n}", '{\n  // none yet\n  "t": {\n    "k": 1\n  }\n}'),
        ('{"t": {"k": 0 /* was */}} // end', '{"t": {"k": 1 /* was */}} // end'),
        ('{"t": {"k": 1.0}}', '{"t": {"k": 1.0}}'),
        ("", '{\n  "t": {\n    "k": 1\n  }\n}\n'),
        ("\ufeff{}", '\ufeff{\n  "t": {\n    "k": 1\n  }\n}'),
    ],
)
def test_a_value_lands_where_a_person_would_put_it(text: str, edited: str) -> None:
    assert set_json(text, ("t", "k"), 1) == edited


def test_only_members_that_differ_are_touched() -> None:
    text = '{"t": {"k": {"command": "/old" /* a */, "args": [ "serve" ] /* b */, "own": 1}}}'
    assert set_json(text, ("t", "k"), SERVER) == text.replace("/old", "/k")


def test_replacing_leaves_out_what_the_new_value_does_not_have() -> None:
    text = '{\n  "t": {\n    "k": {"url": "x"} // mine\n  }\n}'
    assert set_json(text, ("t", "k"), {"command": "/k"}, exact=True) == (
        '{\n  "t": {\n    "k": {\n      "command": "/k"\n    } // mine\n  }\n}'
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "no object"),
        ('{"t": 1}', "'t' is no object"),
        ('{"a": 1} x', "line 1, column 10: extra data, found 'x'"),
        ('{"a": 1\n "b": 2}', "line 2, column 2: expecting ',' delimiter, found '\"'"),
        ('{"a": }', "expecting value, found '}'"),
        ('{"a" 1}', "expecting ':' delimiter"),
        ("{a: 1}", "expecting property name enclosed in double quotes"),
        ('{"a": 1, , "b": 2}', "expecting property name enclosed in double quotes"),
        ('{"a": "open}', "line 1, column 7: unterminated string, found '\"'"),
        ('{"a": 01}', "expecting ',' delimiter"),
        ('{"a": "NaN", /* NaN */ "b": NaN}', "line 1, column 29: NaN is no value"),
        ('{"a": -Infinity}', "line 1, column 7: -Infinity is no value"),
        ('{"a":\n' + "1" * 5000 + "}", "line 2, column 1: an integer of 5000 digits is too long"),
        ('{"a": "\t"}', "line 1, column 8: invalid control character, found '\\t'"),
        ('{"a": "\\x"}', "invalid \\escape"),
        ('{"a": 1', "found the end of the file"),
        ('{"a": 1 /* open }', "expecting ',' delimiter"),
        ("{, }", "expecting property name enclosed in double quotes"),
        ('{"a": [1,,]}', "expecting value"),
        (
            '{"a": {"b": 1},\n  // "a":\n  "b": "a", "a": 2}',
            "line 3, column 13: the key 'a' stands",
        ),
        ('{"a": 1, "\\u0061": 2}', "line 1, column 10: the key 'a' stands twice"),
        ('{"x": {"a": 1}, "a": 1,\n "a": 2}', "line 2, column 2: the key 'a' stands twice"),
        ("[" * 10_000, "too many levels"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(MalformedText, match=re.escape(message)):
        set_json(text, ("t", "k"), 1)


@pytest.mark.parametrize("text", ['{"a": 1,}', '{"a": [1,]}', '{"a": 1} // b', '/* b */ {"a": 1}'])
def test_plain_json_takes_neither_comments_nor_trailing_commas(text: str) -> None:
    assert read_json(text)["a"] in (1, [1])
    with pytest.raises(MalformedText, match="this client allows no"):
        read_json(text, comments=False)


def _random_value(draw: random.Random, depth: int) -> Any:
    kind = draw.randrange(7 if depth < 3 else 4)
    if kind > 4:
        keys = [draw.choice(["a", "b", 'q"\\', "// no", "/*", "ü", "t", "k"]) for _ in range(3)]
        return {key: _random_value(draw, depth + 1) for key in keys[: draw.randrange(4)]}
    if kind == 4:
        return [_random_value(draw, depth + 1) for _ in range(draw.randrange(3))]
    return draw.choice([None, True, -2.5e-3, 17, "", 'a"b\\c\n', "{", "// x", "*/", "😀"])


def _blank(draw: random.Random) -> str:
    choices = ["", " ", "\n", "\n  ", "\t", " // } ,\n", "/* { , */", "\n/* a\n b */\n"]
    return "".join(draw.choices(choices, k=draw.randrange(3)))


def _random_text(draw: random.Random, value: object) -> str:
    """Write `value` with blanks, comments and trailing commas wherever they may stand."""
    if is_object(value):
        opening, closing = "{}"
        items = [
            f"{_blank(draw)}{json.dumps(key)}{_blank(draw)}:{_blank(draw)}"
            f"{_random_text(draw, inner)}{_blank(draw)}"
            for key, inner in value.items()
        ]
    elif isinstance(value, list):
        opening, closing = "[]"
        inners = cast("list[object]", value)
        items = [f"{_blank(draw)}{_random_text(draw, inner)}{_blank(draw)}" for inner in inners]
    else:
        return json.dumps(value, ensure_ascii=draw.random() < 0.5)
    comma = f",{_blank(draw)}" if items and draw.random() < 0.3 else _blank(draw)
    return f"{opening}{','.join(items)}{comma}{closing}"


@pytest.mark.parametrize("seed", range(300))
def test_any_text_keeps_its_comments_and_everything_but_the_value(seed: int) -> None:
    draw = random.Random(seed)
    value = {key: _random_value(draw, 0) for key in draw.sample(["a", "b", "c", "ü"], 3)}
    if draw.random() < 0.6:
        value["t"] = {key: _random_value(draw, 1) for key in draw.sample(["a", "k", "x"], 2)}
        value["t"].pop("k", None)
    text = f"{_blank(draw)}{_random_text(draw, value)}{_blank(draw)}"
    assert read_json(text) == value
    edited = set_json(text, ("t", "k"), SERVER)
    assert read_json(edited) == {**value, "t": {**value.get("t", {}), "k": SERVER}}
    rest = iter(edited)
    assert all(character in rest for character in re.sub(r"\s", "", text))  # in this order
    assert set_json(edited, ("t", "k"), SERVER) == edited
