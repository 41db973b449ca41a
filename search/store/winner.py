"""The winner's file: the source as it is, with the winning tune values made the defaults.

The first value of each `tune` list is the default, so the winning value changes places with it.
Where a promotion held for some workloads only, `where` claims these alone. Nothing else in the file
is touched: not the comment's layout, not a byte below it.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import yaml

WINNER_FILE = "winner.cu"


def winner_path(folder: Path) -> Path:
    """Return where the winner of the run in `folder` lies, once there is one."""
    return folder / WINNER_FILE


def pin_tune(source: str, tune: Mapping[str, int]) -> str:
    """Return `source` with `tune` as the defaults of its header.

    Raises:
        ValueError: The header declares no such parameter or value; a candidate that was evaluated
            with `tune` cannot get here.
    """
    pinned = source
    for name, value in tune.items():
        values = _tune_lists(pinned).get(name, [])
        winning = _find(values, name, value)
        pinned = _swap(pinned, values[0], winning)
    if any(_number(_tune_lists(pinned)[name][0]) != value for name, value in tune.items()):
        raise ValueError("the edited header does not read back with the winning values first")
    return pinned


def claim(source: str, where: str) -> str:
    """Return `source` with `where` as the condition on shapes of its header.

    Args:
        source: A candidate with a sound header.
        where: A predicate of header expressions, on one line.
    """
    root, offset = _header(source)
    entries = _entries(root)
    if "where" in entries:
        old = entries["where"]
        begin, end = offset + old.start_mark.index, offset + old.end_mark.index
        line_end = "\n" if source[begin:end].endswith("\n") else ""  # a block scalar ends with it
        return f"{source[:begin]}{json.dumps(where)}{line_end}{source[end:]}"
    place = offset + entries["kopt"].end_mark.index  # of its first line
    return f"{source[:place]}\nwhere: {json.dumps(where)}{source[place:]}"


def _tune_lists(source: str) -> dict[str, list[tuple[int, int, str]]]:
    """Return, by parameter, the (begin, end, text) of every declared value within `source`."""
    root, offset = _header(source)
    lists: dict[str, list[tuple[int, int, str]]] = {}
    for name, node in _entries(_entries(root).get("tune")).items():
        if isinstance(node, yaml.SequenceNode):
            lists[name] = [
                (offset + item.start_mark.index, offset + item.end_mark.index, item.value)
                for item in node.value
            ]
    return lists


def _header(source: str) -> tuple[yaml.MappingNode, int]:
    """Return the header's mapping, and where its text begins within `source`."""
    begin = source.index("/*") + len("/*")
    header = source[begin : source.index("*/", begin)]
    # A block mapping starts in one column: the blank after the comment's opening is none of it.
    text = header.lstrip()
    root = yaml.SafeLoader(text).get_single_node()
    if not isinstance(root, yaml.MappingNode):
        raise ValueError("the header is no mapping")
    return root, begin + len(header) - len(text)


def _entries(node: yaml.Node | None) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {str(key.value): value for key, value in node.value}


def _find(values: list[tuple[int, int, str]], name: str, value: int) -> tuple[int, int, str]:
    for entry in values:
        if _number(entry) == value:
            return entry
    raise ValueError(f"tune parameter {name} does not declare {value}")


def _number(entry: tuple[int, int, str]) -> int:
    return int(entry[2])


def _swap(source: str, first: tuple[int, int, str], second: tuple[int, int, str]) -> str:
    if first == second:
        return source
    between = source[first[1] : second[0]]
    return source[: first[0]] + second[2] + between + first[2] + source[second[1] :]
