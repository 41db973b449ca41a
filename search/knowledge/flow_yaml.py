"""Values as YAML on one line, such that kernels/strict_yaml.py reads back what was written."""

import re
from collections.abc import Mapping, Sequence

Value = str | int | float | bool | Sequence[str]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./+-]*( [A-Za-z0-9_./+-]+)*")
_RESERVED = {"null", "true", "false"}


def flow_mapping(items: Mapping[str, Value], digits: int) -> str:
    """Return `{key: value, ...}` without what is empty, zero or false; floats with `digits`."""
    shown = (f"{key}: {_value(value, digits)}" for key, value in items.items() if value)
    return f"{{{', '.join(shown)}}}"


def flow_numbers(numbers: Sequence[Value], digits: int) -> str:
    """Return `[number, ...]`, floats with `digits`."""
    return f"[{', '.join(_value(number, digits) for number in numbers)}]"


def scalar(text: str) -> str:
    """Return `text` plain where that is unmistakable, else in double quotes."""
    if _PLAIN.fullmatch(text) and text not in _RESERVED:
        return text
    return f'"{"".join(map(_escaped, text))}"'


def _value(value: Value, digits: int) -> str:
    if isinstance(value, str):
        return scalar(value)
    if isinstance(value, bool):
        return "true"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return f"[{', '.join(map(scalar, value))}]"


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable() and character != "\ufeff":
        return character
    return f"\\U{ord(character):08X}"
