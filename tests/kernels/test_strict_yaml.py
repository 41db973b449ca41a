"""The strict YAML subset: what scalars mean, what is refused, and where."""

import random
from importlib.resources import files

import pytest
import yaml

from kopt.kernels.strict_yaml import Mapping, Node, Scalar, YamlError, load_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-12", -12),
        ("0", 0),
        ("007", "007"),
        ("0x10", "0x10"),
        ("0o17", "0o17"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("9" * 40, "9" * 40),
        ("true", True),
        ("false", False),
        ("yes", "yes"),
        ("On", "On"),
        ("True", "True"),
        ("null", None),
        ("~", None),
        ("", None),
        ("1.0e-6", 1.0e-6),
        ("1e3", 1000.0),
        (".inf", ".inf"),
        ("2020-01-01", "2020-01-01"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("ceil_div(B, 2), 3", "ceil_div(B, 2), 3"),
        ("|\n  12\n", "12\n"),
    ],
)
def test_scalar_has_the_value_of_the_subset(text: str, value: object) -> None:
    root = load_yaml(f"key: {text}")
    assert isinstance(root, Mapping)
    scalar = root.entries["key"]
    assert isinstance(scalar, Scalar)
    assert scalar.value == value
    assert type(scalar.value) is type(value)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\nb: &x 2", 11, "anchors are not allowed: &x"),
        ("a: 1\nb: *x", 11, "aliases are not allowed: *x"),
        ("a: !!python/object:os.system 1", 10, "tags are not allowed"),
        ("a: ! 1", 10, "tags are not allowed"),
        ("a: 1\nb: 1\na: 2", 12, "the key 'a' stands here and in line 10"),
        ("a: {b: 1,\n b: 2}", 11, "the key 'b' stands here and in line 10"),
        ("%YAML 1.1\n---\na: 1", 10, "directives are not allowed"),
        ("a: 1\n---\nb: 1", 11, "a second YAML document"),
        ("1: 2", 10, "a key must be text, got '1'"),
        ("true: 2", 10, "a key must be text, got 'true'"),
        ("[a]: 2", 10, "a key must be text"),
        ("a:\n\tb: 1", 11, "not YAML"),
        ("a: b: c", 10, "not YAML"),
        ("a: [1", 10, "not YAML"),
        ("", 10, "the document is empty"),
        ("a: 1\n\x01", 11, "U+0001"),
        ("a: 1\n\u2028b: 1", 11, "U+2028"),
        ("a: 1\rb: 1", 10, "U+000D"),
        ("\ufeffa: 1", 10, "U+FEFF"),
        ("a: \ud800", 10, "U+D800"),
        ("[" * 13 + "]" * 13, 10, "nested deeper than 12"),
        ("[" * 20_000, 10, "nested deeper than 12"),
        ("a: " + "x" * 1_100_000, 10, "more than 1048576 bytes"),
    ],
)
def test_text_outside_the_subset_is_refused_with_its_line(
    text: str, line: int, message: str
) -> None:
    with pytest.raises(YamlError) as caught:
        load_yaml(text, first_line=10)
    assert message in str(caught.value)
    assert caught.value.line == line


_PIECES = [
    *" \n:-,[]{}#&*!|>'\"%@~\t?",
    "\n  ",
    "- ",
    ": ",
    "---\n",
    "? ",
    "\r\n",
    "a:1",
    "{a:}",
    "|2\n",
]


def _changed(text: str, draw: random.Random) -> str:
    """Return some lines of `text` with a few characters put in, taken out or moved."""
    lines = text.splitlines(keepends=True)
    first = draw.randrange(len(lines))
    some = "".join(lines[first : first + draw.randrange(1, 14)])
    for _ in range(draw.randrange(4)):
        at, to = draw.randrange(len(some) + 1), draw.randrange(len(some) + 1)
        put = draw.choice([draw.choice(_PIECES), some[to : to + 8], ""])
        some = some[:at] + put + some[at + draw.choice([0, 0, 3]) :]
    return some


def _read(text: str) -> Node | tuple[str, int]:
    try:
        return load_yaml(text)
    except YamlError as error:
        return str(error), error.line


@pytest.mark.skipif(not yaml.__with_libyaml__, reason="this PyYAML was built without libyaml")
def test_trees_and_refusals_are_the_same_without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(3)
    problems = files("kopt.kernels") / "problems"
    texts = [
        (problems / name / "problem.yaml").read_text("utf-8")
        for name in ("silu_and_mul", "attention_decode", "merge_state")
    ]
    texts = [_changed(draw.choice(texts), draw) for _ in range(500)]
    fast = [_read(text) for text in texts]
    monkeypatch.delattr(yaml, "CSafeLoader")
    for text, found in zip(texts, fast, strict=True):
        assert found == _read(text), text
    assert 100 < sum(isinstance(found, Mapping) for found in fast) < 400
