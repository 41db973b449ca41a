"""Facts as text: YAML that a person reads and a program could, of exactly the same dict.

Short lists and records stand on one line, text from a candidate in double quotes or as a block.
"""

import json
from collections.abc import Callable
from typing import Any, cast

import yaml

from .wording import Quoted, QuotedLines

_LINE = 110


def render(facts: dict[str, Any]) -> str:
    """Return `facts` as text, in their order."""
    # One line a value, however long: a wrapped sentence could end in what looks like a field.
    return yaml.dump(
        _Whole(facts), Dumper=_FactsDumper, sort_keys=False, allow_unicode=True, width=1_000_000
    ).rstrip("\n")


def structured(facts: dict[str, Any]) -> dict[str, Any]:
    """Return `facts` as plain JSON values."""
    return cast(dict[str, Any], json.loads(json.dumps(facts, allow_nan=False)))


class _Whole(dict[str, Any]):
    """The outermost record: one field a line."""


class _FactsDumper(yaml.SafeDumper):
    """The safe dumper, without references to what came before."""

    def ignore_aliases(self, data: object) -> bool:
        """Write every value where it stands."""
        del data
        return True


def _scalar(style: str | None = None) -> Callable[[yaml.SafeDumper, str], yaml.Node]:
    """Return what writes strings in a style; without one, as a block if they have lines."""

    def represent(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
        chosen = style or ("|" if "\n" in text else None)
        node = cast(Any, dumper).represent_scalar("tag:yaml.org,2002:str", str(text), chosen)
        return cast(yaml.Node, node)

    return represent


def _sequence(dumper: yaml.SafeDumper, items: list[Any] | tuple[Any, ...]) -> yaml.Node:
    node = dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=False)
    node.flow_style = _fits_a_line(node.value)
    return node


def _mapping(dumper: yaml.SafeDumper, fields: dict[str, Any]) -> yaml.Node:
    node = _whole(dumper, fields)
    node.flow_style = _fits_a_line([part for pair in node.value for part in pair])
    return node


def _whole(dumper: yaml.SafeDumper, fields: dict[str, Any]) -> yaml.MappingNode:
    return dumper.represent_mapping("tag:yaml.org,2002:map", fields.items(), flow_style=False)


def _fits_a_line(parts: list[yaml.Node]) -> bool:
    """Return whether these are scalars, none of them a block, that are short together."""
    length = 0
    for part in parts:
        if not isinstance(part, yaml.ScalarNode) or part.style == "|":
            return False
        length += len(part.value) + 2
    return length <= _LINE


_FactsDumper.add_representer(str, _scalar())
_FactsDumper.add_representer(Quoted, _scalar('"'))
_FactsDumper.add_representer(QuotedLines, _scalar("|"))
_FactsDumper.add_representer(list, _sequence)
_FactsDumper.add_representer(tuple, _sequence)
_FactsDumper.add_representer(dict, _mapping)
_FactsDumper.add_representer(_Whole, _whole)
