"""The leading comment of a candidate, from text to `CandidateHeader`: format 1.

Every mistake is one diagnostic with its line in the candidate's own file; nothing here raises for
what a candidate says. Numbers are put in by `plan_resolver.py`.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from kopt.config.near_matches import near_matches

from .candidate import Candidate
from .domain import default_tune, domain
from .expressions import ExpressionError, evaluate_predicate, expression_names
from .families import FAMILIES
from .header import CandidateHeader, HeaderOutcome, TensorMapTemplate, Variant
from .header_declarations import (
    Scope,
    read_scratch,
    read_tensor_maps,
    read_tune,
    read_tune_where,
)
from .header_launches import read_variants
from .problem import Problem
from .record import Diagnostic
from .strict_yaml import Scalar, Sequence, YamlError, load_yaml
from .yaml_fields import Fields, Findings, described, text_of

FORMAT_VERSION = 1

_OPENING = re.compile(r"/\*[ \t]*(?=kopt[ \t]*:)")
_KEYS = (
    "kopt",
    "family",
    "note",
    "where",
    "specialize",
    "tune",
    "tune_where",
    "flags",
    "scratch",
    "tensor_maps",
    "launch",
    "variants",
)
_YAML_HINTS = {
    "'\\t'": "indent with spaces, not tabs",
    "mapping values are not allowed": 'put a text that has a colon in quotes: note: "a: b"',
    "while parsing a flow": "a bracket, brace or quote is not closed, or a comma is missing",
}
"""What to do about the mistakes whose message by the YAML parser does not say it."""

_EXAMPLE = "a candidate begins with /* kopt: 1 (docs/candidates.md; kopt show ID --example)"


@lru_cache(maxsize=64)  # every stage asks for the header of its candidate
def parse_header(candidate: Candidate, problem: Problem) -> HeaderOutcome:
    """Return the header of `candidate` checked against the names of `problem`.

    The outcome holds either a header that is syntactically whole, each name known, or one
    diagnostic for each mistake.
    """
    source = candidate.source
    opening = _OPENING.match(source)
    if opening is None:
        return _refused(_missing_header(source))
    end = source.find("*/", opening.end())
    if end < 0:
        return _refused(Diagnostic(message="the header comment is never closed by */", line=1))
    try:
        root = load_yaml(source[opening.end() : end])
    except YamlError as error:
        return _refused(_yaml_mistake(error, source[:end]))
    findings = Findings()
    fields = Fields(root, "header", _KEYS, findings)
    _check_version(fields)
    header = _read_header(fields, Scope(problem, findings))
    if not findings.diagnostics:
        _check_conditions(header, problem, findings)
    if findings.diagnostics:
        return HeaderOutcome(header=None, diagnostics=tuple(findings.diagnostics))
    return HeaderOutcome(header=header)


def declared_macros(source: str) -> frozenset[str]:
    """Return the macros that the header of `source` asks for: tune names and KOPT_<AXIS>.

    Nothing is checked against a problem; a header with mistakes declares none.
    """
    opening = _OPENING.match(source)
    end = source.find("*/")
    if opening is None or end < 0:
        return frozenset()
    try:
        root = load_yaml(source[opening.end() : end])
    except YamlError:
        return frozenset()
    fields = Fields(root, "header", _KEYS, Findings())
    axes = {node.text for node in fields.items("specialize") if isinstance(node, Scalar)}
    return frozenset(fields.entries("tune")) | {f"KOPT_{axis}" for axis in axes}


def _refused(diagnostic: Diagnostic) -> HeaderOutcome:
    return HeaderOutcome(header=None, diagnostics=(diagnostic,))


def _missing_header(source: str) -> Diagnostic:
    late = re.search(r"/\*[\s*]*kopt[ \t]*:", source)
    if late is None:
        message = "the file has no kopt header comment"
        return Diagnostic(message=message, line=1, hint=_EXAMPLE)
    line = source.count("\n", 0, late.start()) + 1
    message = "the kopt header comment does not open the file"
    return Diagnostic(message=message, line=line, hint=_EXAMPLE)


def _yaml_mistake(error: YamlError, header: str) -> Diagnostic:
    starred = any(line.lstrip().startswith("*") for line in header.splitlines()[1:])
    hint = next((hint for part, hint in _YAML_HINTS.items() if part in str(error)), None)
    if starred:
        hint = "header lines have no leading *"
    return Diagnostic(message=f"header: {error}", line=error.line, hint=hint)


def _check_version(fields: Fields) -> None:
    node = fields.node("kopt")
    value = node.value if isinstance(node, Scalar) else None
    if node is not None and (isinstance(value, bool) or value != FORMAT_VERSION):
        fields.error("kopt", f"expected format version {FORMAT_VERSION}, got {described(node)}")


def _read_header(fields: Fields, scope: Scope) -> CandidateHeader:
    fields.require("family")
    read_tune(fields, scope)
    flags = _flags(fields, scope.findings)
    scratch = read_scratch(fields, scope)
    tensor_maps = read_tensor_maps(fields, scope)
    variants = read_variants(fields, scope)
    _check_outputs_are_passed(variants, tensor_maps, scope)
    return CandidateHeader(
        family=_families(fields),
        note=fields.text("note") or None,
        where=fields.predicate("where", scope.axes),
        specialize=_specialized(fields, scope),
        tune=scope.tune,
        tune_where=read_tune_where(fields, scope),
        fast_math=flags.boolean("fast_math", default=True),
        max_registers=flags.integer("max_registers", 16, 255),
        scratch=scratch,
        tensor_maps=tensor_maps,
        variants=variants,
        lines={key: fields.line_of(key) for key in _KEYS if key in fields},
    )


def _flags(fields: Fields, findings: Findings) -> Fields:
    node = fields.node("flags")
    keys = ("fast_math", "max_registers")
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return Fields(load_yaml("{}", fields.line), "flags", keys, findings)
    return Fields(node, "flags", keys, findings)


def _families(fields: Fields) -> tuple[str, ...]:
    node = fields.node("family")
    if node is None:
        return ()
    nodes = node.items if isinstance(node, Sequence) else (node,)
    if not nodes:
        fields.error("family", "the list is empty; the primary family stands first")
    families: list[str] = []
    for item in nodes:
        family = text_of(item, "header: family", fields.findings)
        if family is None:
            continue
        if family not in FAMILIES:
            message = f"header: unknown family {family[:80]!r}; {near_matches(family, FAMILIES)}"
            fields.findings.error(message, item.line)
        elif family in families:
            fields.findings.error(f"header: the family {family!r} stands twice", item.line)
        families.append(family)
    return tuple(families)


def _specialized(fields: Fields, scope: Scope) -> tuple[str, ...]:
    axes: list[str] = []
    for node in fields.items("specialize"):
        axis = text_of(node, "header: specialize", scope.findings)
        if axis is None:
            continue
        if axis not in scope.axes:
            message = f"header: specialize: unknown axis {axis[:80]!r}; "
            scope.findings.error(message + near_matches(axis, scope.axes), node.line)
        elif axis in axes:
            scope.findings.error(f"header: specialize: the axis {axis!r} stands twice", node.line)
        axes.append(axis)
    return tuple(axes)


def _check_outputs_are_passed(
    variants: tuple[Variant, ...], tensor_maps: tuple[TensorMapTemplate, ...], scope: Scope
) -> None:
    """Report an output that no launch of a variant gets: it could only stay unwritten."""
    if scope.findings.diagnostics:
        return
    mapped = {entry.name: entry.tensor for entry in tensor_maps}
    for variant in variants:
        names = {argument.name for launch in variant.launch for argument in launch.args}
        passed = names | {mapped[name] for name in names if name in mapped}
        for tensor in scope.problem.tensors:
            if tensor.role != "in" and tensor.name not in passed:
                message = f"the output {tensor.name!r} is passed to no launch"
                scope.findings.error(message, variant.line, "add it to args")


def _check_conditions(header: CandidateHeader, problem: Problem, findings: Findings) -> None:
    """Report a domain without workloads, and conditions without a value or a default choice."""
    line = header.lines.get
    for workload in problem.workloads:
        _evaluated(header.where, workload.axes, ("where", line("where")), findings)
    workloads = domain(header, problem)
    if not workloads:
        findings.error(f"where: {header.where!r} holds for no workload", line("where"))
    for workload in workloads:
        for variant in header.variants:
            _evaluated(variant.when, workload.axes, ("when", variant.line), findings)
    defaults = default_tune(header)
    for condition in header.tune_where:
        if not expression_names(condition) <= frozenset(defaults):
            continue
        place = ("tune_where", line("tune_where"))
        if _evaluated(condition, defaults, place, findings) is False:
            shown = ", ".join(f"{name}={value}" for name, value in defaults.items())
            message = f"tune_where: {condition!r} refuses the default choice {shown}"
            findings.error(message, place[1], "put a value that satisfies it first")


def _evaluated(
    predicate: str, names: Mapping[str, int], place: tuple[str, int | None], findings: Findings
) -> bool | None:
    key, line = place
    try:
        return evaluate_predicate(predicate, names)
    except ExpressionError as error:
        shown = ", ".join(f"{name}={value}" for name, value in names.items())
        findings.error(f"{key}: {error} in {predicate!r} for {shown}", line)
        return None
