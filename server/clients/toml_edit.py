"""Setting one table of a TOML text, so that comments and layout stay.

A new table goes behind the last line of the file; a table that is there is changed key by key with
tomlkit, which keeps the rest of the text as it is.
"""

import tomllib
from collections.abc import MutableMapping
from typing import Any, cast

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable

from .json_edit import MalformedText, is_object, nested


def read_toml(text: str) -> dict[str, Any]:
    """Return what `text` holds.

    Raises:
        MalformedText: It is not TOML; the message says where.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise MalformedText(str(error)) from error


def set_toml(
    text: str, keys: tuple[str, ...], value: dict[str, Any], *, exact: bool = False
) -> str:
    """Return `text` with the members of `value` below `keys`; other members there go if `exact`.

    Raises:
        MalformedText: It is not TOML, or something on the way to the last key is no table.
    """
    read_toml(text)
    document = tomlkit.parse(text)
    table: MutableMapping[str, Any] = document
    for depth, key in enumerate(keys):
        if key not in table:
            return _append(text, document, keys, value) if depth else _at_end(text, keys, value)
        if not isinstance(table[key], MutableMapping):
            raise MalformedText(f"{key!r} is no table")
        table = cast("MutableMapping[str, Any]", table[key])
    for key in [key for key in table if exact and key not in value]:
        del table[key]
    _merge(table, value)
    return tomlkit.dumps(document)


def _append(
    text: str, document: tomlkit.TOMLDocument, keys: tuple[str, ...], value: dict[str, Any]
) -> str:
    """Put a new table below a table that is there already."""
    behind = _at_end(text, keys, value)
    try:
        tomllib.loads(behind)
    except tomllib.TOMLDecodeError:  # the outer table is written inline: it takes no header below
        table: MutableMapping[str, Any] = document
        for key in keys[:-1]:
            table = cast("MutableMapping[str, Any]", table[key])
        try:
            table[keys[-1]] = _inline(value)
        except TOMLKitError as error:
            raise MalformedText(f"cannot add {keys[-1]!r}: {error}") from error
        return tomlkit.dumps(document)
    return behind


def _inline(value: dict[str, Any]) -> InlineTable:
    table = tomlkit.inline_table()
    for key, below in value.items():
        table[key] = _inline(below) if is_object(below) else below
    return table


def _at_end(text: str, keys: tuple[str, ...], value: dict[str, Any]) -> str:
    if text and not text.endswith("\n"):
        text += "\n"
    gap = "" if not text or text.endswith("\n\n") else "\n"
    return f"{text}{gap}{tomlkit.dumps(nested(keys, value))}"


def _merge(table: MutableMapping[str, Any], value: dict[str, Any]) -> None:
    for key, below in value.items():
        if is_object(below) and isinstance(table.get(key), MutableMapping):
            _merge(cast("MutableMapping[str, Any]", table[key]), below)
        elif key not in table or table[key] != below:
            table[key] = below
