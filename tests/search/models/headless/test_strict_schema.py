"""Schemas in the form that every client enforces, and their values turned back."""

import json
from importlib import import_module
from typing import Any

import pytest

from kopt.kernels.record import ToldRecord
from kopt.search.agents import learner, planner, reflector, state_questions, verifier
from kopt.search.agents.agent_tools import TOOL_DEFINITIONS
from kopt.search.agents.candidate_writer import SUBMIT
from kopt.search.agents.tool_definitions import answer_schema
from kopt.search.models.headless.strict_schema import restored, strict_schema

jsonschema: Any = import_module("jsonschema")  # it has no types
ASKING = (learner, planner, reflector, state_questions, verifier)


def _forms(of: type[ToldRecord]) -> list[type[ToldRecord]]:
    """Return the records that the modules of all agents have made."""
    return [one for own in of.__subclasses__() for one in (own, *_forms(own))]


OF_KOPT = {
    **{tool.name: tool.input_schema for tool in (*TOOL_DEFINITIONS, SUBMIT)},
    **{form.__name__: answer_schema(form) for form in _forms(ToldRecord)},
}
ALLOWED = {"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum"}


def _schemas(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a schema and all those in it."""
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    inner += [schema["items"]] if "items" in schema else []
    return [schema, *(one for part in inner for one in _schemas(part))]


@pytest.mark.parametrize("schema", OF_KOPT.values(), ids=OF_KOPT)
def test_every_schema_that_kopt_sends_is_strict(schema: dict[str, Any]) -> None:
    assert ASKING and len(OF_KOPT) > 15
    strict = strict_schema(schema)
    jsonschema.Draft202012Validator.check_schema(strict)
    for one in _schemas(strict):
        assert set(one) <= {*ALLOWED, "const", "description"}
        if one.get("type") == "object":
            assert one["additionalProperties"] is False
            assert one["required"] == list(one["properties"])


CASE: dict[str, Any] = {
    "type": "object",
    "$defs": {"Note": {"type": "object", "properties": {"text": {"type": "string"}}}},
    "properties": {
        "source": {"type": "string", "minLength": 1, "description": "A file."},
        "tune": {"type": "object", "additionalProperties": {"type": "integer"}},
        "notes": {"type": "array", "items": {"$ref": "#/$defs/Note"}},
        "kind": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["source", "kind"],
}


def test_what_is_left_out_is_null_and_a_map_is_a_list_of_names_with_values() -> None:
    strict = strict_schema(CASE)
    told = {
        "source": "x",
        "tune": [{"name": "BLOCK", "value": 64}],
        "notes": [{"text": None}, {"text": "t"}],
        "kind": None,
    }
    jsonschema.validate(told, strict)
    meant = {"source": "x", "tune": {"BLOCK": 64}, "notes": [{}, {"text": "t"}], "kind": None}
    assert restored(CASE, told) == meant
    assert restored(CASE, {**told, "tune": None, "notes": None}) == {"source": "x", "kind": None}


def test_limits_that_the_form_does_not_hold_are_said_in_words() -> None:
    source = strict_schema(CASE)["properties"]["source"]
    assert source == {"type": "string", "description": "A file. (minLength 1)"}


@pytest.mark.parametrize(
    "value", [None, 3, "text", [1], {"tune": [1]}, {"tune": [{"name": 2, "value": 1}]}, {"x": None}]
)
def test_value_that_does_not_follow_the_schema_is_left_for_kopt_to_refuse(value: object) -> None:
    found = restored(CASE, value)
    assert found == value
    json.dumps(found)
