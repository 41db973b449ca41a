"""JSON schemas as clients get them: without pydantic's titles, references and empty defaults.

Every token of a definition is paid in every session, and some clients do not follow `$ref`. Limits
on lengths are left out too: they are there for hostile callers, and the check of arguments has
them.
"""

from typing import Any, cast

_EMPTY: tuple[Any, ...] = ("", [], {}, None)
_LEFT_OUT = ("$defs", "title", "maxLength", "minLength", "maxItems", "minItems", "maxProperties")


def compact_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the argument schema of a tool, closed to unknown names."""
    return {**_compact(schema, schema.get("$defs", {})), "additionalProperties": False}


def _compact(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in node:
        return _compact(definitions[node["$ref"].rpartition("/")[2]], definitions)
    kept: dict[str, Any] = {}
    for key, value in node.items():
        if key in _LEFT_OUT or (key == "default" and value in _EMPTY):
            continue
        if key == "properties":
            kept[key] = {name: _compact(child, definitions) for name, child in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            kept[key] = _compact(cast(dict[str, Any], value), definitions)
        else:
            kept[key] = value
    return kept
