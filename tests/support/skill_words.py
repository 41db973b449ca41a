"""Everything that the skill may name in backticks: what kopt really has, each from its source."""

import ast
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

import click

from kopt.config.gpu_specs import load_gpus
from kopt.config.passed_environment import SERVER_VARIABLES
from kopt.kernels.candidate import Candidate
from kopt.kernels.expression_parser import FUNCTIONS
from kopt.kernels.families import FAMILIES
from kopt.kernels.header import CandidateHeader, Flags, LaunchTemplate
from kopt.kernels.header_parser import parse_header
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.source_names import kopt_headers
from kopt.kernels.status import Provenance, Status, Verdict
from kopt.server.cli import COMMANDS, group

ROOT = Path(__file__).parents[2]
PROBLEM = load_problems()["silu_and_mul"]
"""The problem that the skill's examples are for."""
PLACEHOLDERS = {"ID", "FILE", "RUN", "WORDS", "RECEIPT", "WINNER", "NAME: [values]"}
OF_OTHERS = {
    *("torch.compile", "ModelNew", "expf", "pip install 'kopt-mcp[toolkit,docs]'"),
    *(".venv/bin/kopt", "pip install 'kopt-mcp[torch]'", "KOPT_H", "<kopt/...>", ".cu", "Next:"),
    *("kopt::griddepcontrol_wait()", "ldg_16", "ldg_128", "+ - * // %", "blocks_per_sm"),
    *("SM_COUNT", "an empty launch", '"hot"', '"31"', '"all"', '"full"', "kopt_problems"),
    *("problem.yaml", "oracle.py", "baseline.py", "reference.cu", "small", "official"),
    *("auto", "sim", "cuda:0", "when", "init", "running", "queued", "paused"),
}
"""Words of other programs and languages, and values that stand in no closed list."""


@cache
def words() -> frozenset[str]:
    """Return the single words that the skill may name."""
    header = {*CandidateHeader.model_fields, *LaunchTemplate.model_fields}
    header |= {*Flags.model_fields, "kernel"}
    listed = {*Status, *Verdict, *Provenance, *FAMILIES, *FUNCTIONS}
    gpus = {*load_gpus(), *(gpu.arch for gpu in load_gpus().values())}
    gpus |= {arch.rstrip("a") for arch in gpus}
    of_problem = {PROBLEM.name, *PROBLEM.kernel_ids, *PROBLEM.axes}
    of_problem |= {tensor.name for tensor in PROBLEM.tensors}
    known = {*header, *map(str, listed), *gpus, *of_problem, *_told(), *_fact_names()}
    return frozenset(known | {f"<{name}>" for name in kopt_headers()} | {*SERVER_VARIABLES})


def is_true(span: str) -> bool:
    """Return whether what stands between two backticks exists in kopt."""
    if span in PLACEHOLDERS | OF_OTHERS | words() | _of_options("choices"):
        return True
    if span.startswith("kopt "):
        return command_fault(span) is None
    if span.startswith("-"):
        return span.split()[0] in _of_options("names") | {"--help"}
    if span.startswith("docs/"):
        return (ROOT / span).is_file()
    if re.fullmatch(r"[a-z_]+\.[a-z_]+", span):
        return all(part in words() for part in span.split("."))
    return _is_in_header(span)


def command_fault(line: str) -> str | None:
    """Return why `line` is no call of kopt; None if command, options and choices all exist."""
    given = shlex.split(line, comments=True)
    context = click.Context(group, info_name="kopt")
    command: click.Command = group
    arguments = given[1:]
    while isinstance(command, click.Group) and arguments:
        found = command.get_command(context, arguments[0])
        if found is None:
            break
        context = click.Context(found, info_name=arguments.pop(0), parent=context)
        command = found
    if isinstance(command, click.Group) and not command.invoke_without_command:
        return f"{line}: no such command"
    try:
        values, _, _ = command.make_parser(context).parse_args([*arguments])
    except click.UsageError as error:
        return f"{line}: {error.format_message()}"
    for parameter in command.params:
        value = values.get(parameter.name or "")
        kind = parameter.type
        if isinstance(kind, click.Choice) and isinstance(value, str) and value not in kind.choices:
            return f"{line}: {value} is none of {kind.choices}"
    return None


def header_faults(text: str) -> list[str]:
    """Return what is wrong with a candidate's header."""
    outcome = parse_header(Candidate(text), PROBLEM)
    return [found.message for found in outcome.diagnostics]


def _is_in_header(span: str) -> bool:
    """Return whether `span` is a part of a header: a key and value, a condition, an argument."""
    launch = "kernel: k, grid: B, block: 32, args: [input, out, H]"
    forms = (
        f"{span}\nlaunch: [{{{launch}}}]",
        f"where: {span}\nlaunch: [{{{launch}}}]",
        f"flags: {{{span}}}\nlaunch: [{{{launch}}}]",
        f"launch: [{{{launch}, {span}}}]",
        f"launch: [{{{launch.replace(', H]', f', {span}]')}}}]",
    )
    return any(not header_faults(f"/* kopt: 1\nfamily: other\n{form}\n*/\n") for form in forms)


@cache
def _of_options(what: Literal["names", "choices"]) -> frozenset[str]:
    """Return the names of all options of kopt, or the values that those with a choice take."""
    context = click.Context(group)
    commands = (group.get_command(context, name) for name in COMMANDS)
    options = [one for command in commands if command is not None for one in command.params]
    if what == "names":
        return frozenset(name for one in options for name in one.opts)
    kinds = (one.type for one in options)
    return frozenset(
        str(value) for kind in kinds if isinstance(kind, click.Choice) for value in kind.choices
    )


def _told() -> Iterator[str]:
    """Yield names of tools, their arguments and the values that these may have."""
    for path in (ROOT / "tests/server/protocol/snapshots").glob("*.json"):
        yield path.stem
        yield from _of_schema(json.loads(path.read_text("utf-8")))


def _of_schema(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in cast(Sequence[Any], value):
            yield from _of_schema(each)
    elif isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        yield from fields.get("properties", {})
        yield from (one for one in fields.get("enum", ()) if isinstance(one, str))
        for each in fields.values():
            yield from _of_schema(each)


def _fact_names() -> Iterator[str]:
    """Yield texts and keywords of the modules that make replies: the names of their fields."""
    folders = ("tools/facts", "server/protocol/replies", "server/protocol", "search/advice")
    for path in (path for folder in folders for path in (ROOT / folder).glob("*.py")):
        if path.stem in ("prompts", "skills_extension"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
            elif isinstance(node, ast.keyword) and node.arg:
                yield node.arg
