"""JSON schemas in the strict form that every client enforces, and values of them turned back.

The strict form has no optional properties and no maps: an optional property is required and may be
null, a map is a list of names with values, and limits of lengths and ranges are said in words.
kopt validates every answer again.

Source:
    "Structured outputs", platform.openai.com/docs: supported schemas.
"""

from collections.abc import Mapping
from typing import Any, cast

Schema = Mapping[str, Any]
_KEPT = ("type", "enum", "const")
_DROPPED = ("default", "title", "description", "$defs", "additionalProperties", "properties")
_NULL = {"type": "null"}


def strict_schema(schema: Schema) -> dict[str, Any]:
    """Return `schema` in the strict form."""
    return _strict(schema, schema.get("$defs", {}))


def _strict(schema: Schema, known: Schema) -> dict[str, Any]:
    schema = _resolved(schema, known)
    if (values := _map_values(schema)) is not None:
        pair = _object({"name": {"type": "string"}, "value": _strict(values, known)})
        found: dict[str, Any] = {"type": "array", "items": pair}
    elif "properties" in schema:
        required = schema.get("required", ())
        found = _object(
            {
                name: one if name in required else {"anyOf": [one, _NULL]}
                for name, one in (
                    (name, _strict(own, known)) for name, own in schema["properties"].items()
                )
            }
        )
    elif "anyOf" in schema:
        found = {"anyOf": [_strict(one, known) for one in schema["anyOf"]]}
    else:
        found = {name: schema[name] for name in _KEPT if name in schema}
        if "items" in schema:
            found["items"] = _strict(schema["items"], known)
    words = _words(schema)
    return {**found, "description": words} if words else found


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _words(schema: Schema) -> str:
    """Return the description, with the limits that the strict form does not hold."""
    limits = [
        f"{name} {value}"
        for name, value in schema.items()
        if name not in (*_KEPT, *_DROPPED, "items", "required", "anyOf")
    ]
    return " ".join([schema.get("description", ""), *(f"({limit})" for limit in limits)]).strip()


def restored(schema: Schema, value: object) -> object:
    """Return a value of the strict form of `schema` as one of `schema`; what does not fit stays."""
    return _restored(schema, schema.get("$defs", {}), value)


def _restored(schema: Schema, known: Schema, value: object) -> object:
    schema, as_it_is = _resolved(schema, known), value
    if (values := _map_values(schema)) is not None:
        return _as_map(values, known, value)
    if isinstance(value, dict) and "properties" in schema:
        required, own = schema.get("required", ()), schema["properties"]
        return {
            name: _restored(own[name], known, one) if name in own else one
            for name, one in cast(dict[str, object], value).items()
            if one is not None or name in required or name not in own
        }
    if isinstance(value, list) and "items" in schema:
        return [_restored(schema["items"], known, one) for one in cast(list[object], value)]
    return as_it_is


def _as_map(values: Schema, known: Schema, value: object) -> object:
    as_it_is = value
    pairs = cast(list[object], value) if isinstance(value, list) else [value]
    found: dict[str, object] = {}
    for pair in pairs:
        own = cast(dict[str, object], pair) if isinstance(pair, dict) else {}
        name = own.get("name")
        if not isinstance(name, str) or "value" not in own:
            return as_it_is
        found[name] = _restored(values, known, own["value"])
    return found


def _map_values(schema: Schema) -> Schema | None:
    """Return the schema of a map's values; None for what is no map."""
    values = schema.get("additionalProperties")
    return cast(Schema, values) if isinstance(values, dict) and "properties" not in schema else None


def _resolved(schema: Schema, known: Schema) -> Schema:
    """Return the schema that a reference names, with what stands beside it."""
    if "$ref" not in schema:
        return schema
    beside = {name: value for name, value in schema.items() if name != "$ref"}
    return {**known[schema["$ref"].rpartition("/")[2]], **beside}
