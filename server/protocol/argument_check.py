"""The checks of calls of tools and prompts before anything runs, in every protocol era.

The SDK drops unknown arguments silently, so that a misspelt option would run with its default,
reports the rest in pydantic's words, and answers a mistake in a prompt with "Internal server error"
and a traceback on stderr. Here each mistake becomes one line that says what is allowed. What the
argument of a prompt means is not judged here: the prompts do that themselves.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.mcpserver.prompts import Prompt
from mcp.server.mcpserver.tools import Tool
from mcp.types import INVALID_PARAMS
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from .refusal import nearest, refusal, shown

_MISTAKES_SHOWN = 5
_MAX_NAMES = 100
"""Arguments of one call; no tool takes a fifth of them."""
_MAX_VALUES = 10_000
"""Values of one call with all that lies in them: each may be a mistake that pydantic describes.
The largest step that is allowed, every candidate with every tune name, has half of them."""
_WORDS = {
    "int_type": "a whole number is expected",
    "int_parsing": "a whole number is expected",
    "int_from_float": "a whole number is expected",
    "float_type": "a number is expected",
    "float_parsing": "a number is expected",
    "finite_number": "a finite number is expected",
    "bool_type": "true or false is expected",
    "bool_parsing": "true or false is expected",
    "string_type": "a text is expected",
    "tuple_type": "a list is expected",
    "list_type": "a list is expected",
    "dict_type": "an object of names and values is expected",
    "model_type": "an object is expected",
    "model_attributes_type": "an object is expected",
    "greater_than_equal": "at least {ge} is expected",
    "greater_than": "more than {gt} is expected",
    "less_than_equal": "at most {le} is expected",
    "less_than": "less than {lt} is expected",
    "string_too_short": "at least {min_length} characters are expected",
    "string_too_long": "at most {max_length} characters are expected",
    "too_short": "at least {min_length} of them are expected",
    "too_long": "at most {max_length} of them are expected",
    "literal_error": "expected is {expected}",
}
"""Words for a value that was expected, by pydantic's type of error, with its numbers in braces."""


def checked_calls(
    tools: Sequence[Tool], prompts: Sequence[Prompt], left_out: Sequence[str]
) -> ServerMiddleware[Any]:
    """Return the middleware that refuses calls of tools and prompts whose arguments do not fit.

    Args:
        tools: The tools that the server offers.
        prompts: The prompts that the server offers; none if it is read-only.
        left_out: Names of tools that this server leaves out because it is read-only.
    """
    tools_by_name = {tool.name: tool for tool in tools}
    prompts_by_name = {prompt.name: prompt for prompt in prompts}

    async def check(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method not in ("tools/call", "prompts/get"):
            return await call_next(ctx)
        params: Mapping[str, Any] = ctx.params or {}
        name: Any = params.get("name")
        given: Any = params.get("arguments") or {}
        if not isinstance(name, str) or not isinstance(given, dict):
            return await call_next(ctx)  # no valid request: the SDK says so
        arguments = cast(dict[str, Any], given)
        if ctx.method == "prompts/get":
            if fault := _prompt_fault(name, arguments, prompts_by_name):
                raise MCPError(INVALID_PARAMS, fault)
        elif name in left_out:
            return refusal(
                f"{name} is not offered: this server was started with --read-only;"
                f" it has {', '.join(tools_by_name)}"
            )
        elif fault := _tool_fault(name, arguments, tools_by_name):
            return refusal(fault)
        return await call_next(ctx)

    return check


def _tool_fault(name: str, arguments: dict[str, Any], tools: Mapping[str, Tool]) -> str:
    """Return why a tool cannot be called so; empty if it can."""
    if name not in tools:
        return f"there is no tool {shown(name)}; {nearest(name, tools)}"
    if _is_too_much(arguments):
        allowed = ", ".join(tools[name].parameters["properties"])
        return (
            f"{name}: more than {_MAX_NAMES} arguments or {_MAX_VALUES} values came;"
            f" allowed: {allowed}"
        )
    mistakes = argument_mistakes(tools[name], arguments)
    return f"{name}: {'; '.join(mistakes)}" if mistakes else ""


def _prompt_fault(name: str, given: Mapping[str, Any], prompts: Mapping[str, Prompt]) -> str:
    """Return why a prompt cannot be filled in so; empty if it can."""
    if not prompts:
        return "no prompt is offered: this server is read-only"
    if name not in prompts:
        return f"there is no prompt {shown(name)}; {nearest(name, prompts)}"
    known = {argument.name: argument for argument in prompts[name].arguments or []}
    mistakes = [
        f"{one} is missing: {argument.description}"
        for one, argument in known.items()
        if argument.required and one not in given
    ]
    unknown = [one for one in given if one not in known]
    mistakes += [f"unknown argument {shown(one)}, {nearest(one, known)}" for one in unknown[:5]]
    return f"{name}: {'; '.join(mistakes)}" if mistakes else ""


def argument_mistakes(tool: Tool, arguments: dict[str, Any]) -> list[str]:
    """Return what is wrong with `arguments`, each with what would be right; empty if they fit."""
    properties = tool.parameters["properties"]
    unknown = [name for name in arguments if name not in properties]
    # Only those that are shown are worded: looking for near names takes long.
    mistakes = [
        f"unknown argument {shown(name)}, {nearest(name, properties)}"
        for name in unknown[:_MISTAKES_SHOWN]
    ]
    count = len(unknown)
    try:
        tool.fn_metadata.validate_arguments(arguments)
    except ValidationError as error:
        found = _of_one_kind(error.errors(include_url=False))
        count += len(found)
        left = found[: _MISTAKES_SHOWN - len(mistakes)]
        mistakes += [_mistake(one, tool.parameters) for one in left]
    if count > len(mistakes):
        mistakes.append(f"and {count - len(mistakes)} more")
    return mistakes


def _of_one_kind(found: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """Return findings without those of a kind of value that the caller did not mean.

    An argument of two kinds, an object or a text, is tried as both: what is said of the text is
    dropped, and the kind's name is taken out of the place.
    """
    kept: list[ErrorDetails] = []
    for one in found:
        place = tuple(part for part in one["loc"] if not _is_kind(part))
        is_other_kind = len(place) < len(one["loc"]) and one["type"] == "string_type"
        if not is_other_kind:
            kept.append({**one, "loc": place})
    return kept or list(found)


def _is_kind(part: int | str) -> bool:
    """Return whether a part of a place names a kind of value: `dict[str,int]`."""
    return isinstance(part, str) and (part == "constrained-str" or part.startswith("dict["))


def _is_too_much(arguments: dict[str, Any]) -> bool:
    """Return whether there is more in `arguments` than any call needs."""
    if len(arguments) > _MAX_NAMES:
        return True
    left: list[Any] = [arguments]
    seen = 0
    while left and seen <= _MAX_VALUES:
        value: Any = left.pop()
        inner: Sequence[Any] = ()
        if isinstance(value, dict):
            inner = list(cast(dict[str, Any], value).values())
        elif isinstance(value, list):
            inner = cast(Sequence[Any], value)
        seen += len(inner)
        left += inner[: _MAX_VALUES + 1]
    return seen > _MAX_VALUES


def _mistake(found: ErrorDetails, schema: Mapping[str, Any]) -> str:
    """Return one of pydantic's findings in kopt's words."""
    *parents, last = found["loc"] or ("arguments",)
    name = _place(found["loc"])
    owner = _schema_at(schema, parents)
    field = owner.get("properties", {}).get(last, {})
    value = found["input"]
    if found["type"] == "missing":
        return f"{name} is missing: {field.get('description', 'it is needed')}"
    if found["type"] == "extra_forbidden":
        return f"unknown field {name}, {nearest(str(last), owner.get('properties', {}))}"
    if "enum" in field:
        return f"{name} is {shown(value)}, {nearest(str(value), field['enum'])}"
    return f"{name} is {shown(value)}: {_expected(found)}"


def _place(path: Sequence[int | str]) -> str:
    """Return `candidates[0].family` for the path of a value."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def _schema_at(schema: Mapping[str, Any], path: Sequence[int | str]) -> Mapping[str, Any]:
    """Return the schema of the object at `path`; an index goes to the items of a list."""
    for part in path:
        child = schema.get("items") if isinstance(part, int) else None
        schema = child or schema.get("properties", {}).get(part, {})
    return schema


def _expected(found: ErrorDetails) -> str:
    """Return what was expected in place of the value of a finding."""
    words = _WORDS.get(found["type"])
    if words is None:
        return f"{found['msg'][:1].lower()}{found['msg'][1:]}"
    limits = {
        name: f"{value:g}" if isinstance(value, float) else value
        for name, value in found.get("ctx", {}).items()
    }
    text = words.format(**limits)
    return text.replace(" 1 characters are", " 1 character is").replace(
        " 1 of them are expected", " one is expected"
    )
