"""The strict YAML subset: what scalars mean, what is refused, and where."""

import pytest

from kopt.kernels.strict_yaml import Mapping, Scalar, YamlError, load_yaml


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
