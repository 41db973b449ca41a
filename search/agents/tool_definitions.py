"""Tools as a model is told about them: the docstrings of an arguments record are its schema."""

from typing import Any, cast

from pydantic import ValidationError

from kopt.kernels.record import ToldRecord
from kopt.search.models.model import Tool
from kopt.tools.facts.wording import plain_beginning

MISTAKES_CHARACTERS = 1_000
"""The most that is told of mistakes: it names fields as the model did, and is prompt again."""


def define_tool(name: str, description: str, arguments: type[ToldRecord]) -> Tool:
    """Return the tool `name`, whose arguments are the fields of `arguments`."""
    schema = _without_titles(arguments.model_json_schema())
    schema.pop("description", None)
    return Tool(name=name, description=description, input_schema=schema)


def answer_schema(answer: type[ToldRecord]) -> dict[str, Any]:
    """Return the JSON schema of an answer, without what only people read."""
    return _without_titles(answer.model_json_schema())


def mistakes_of(error: ValidationError) -> str:
    """Return what is wrong with arguments or with an answer, a clause for each of the first few."""
    clauses = [
        f"{'.'.join(map(str, one['loc'])) or 'the whole'}: {one['msg']}"
        for one in error.errors(include_url=False, include_input=False)[:5]
    ]
    return plain_beginning("; ".join(clauses), MISTAKES_CHARACTERS)


def _without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        kept[key] = (
            _without_titles(cast(dict[str, Any], value)) if isinstance(value, dict) else value
        )
    return kept
