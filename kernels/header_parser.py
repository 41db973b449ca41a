"""The leading comment of a candidate, from text to `CandidateHeader`: format 1.

Every mistake is one diagnostic with its line in the candidate's own file; nothing here raises for
what a candidate says. Numbers are put in by `plan_resolver.py`.
"""

import re
from collections.abc import Mapping as MappingOf
from functools import lru_cache

from kopt.config.yaml_mistakes import yaml_hint

from .candidate import Candidate
from .domain import default_tune, domain
from .expressions import ExpressionError, evaluate_predicate, expression_names
from .header import CandidateHeader, HeaderOutcome, Variant
from .header_scope import Scope
from .problem import Problem
from .record import Diagnostic, Findings
from .strict_yaml import Mapping, Node, Scalar, Sequence, YamlError, load_yaml
from .yaml_records import read_record

_OPENING = re.compile(r"/\*[ \t]*(?=kopt[ \t]*:)")
_TORCH_INCLUDE = re.compile(r"^\s*#\s*include\s*<(torch/|ATen/|pybind11/)", re.MULTILINE)
_TORCH = (
    "a torch extension is judged by kopt review FILE --claim 1.5x --kernel ID --call TEXT; to make"
    " its kernel a candidate, open the file with /* kopt: 1 and leave the host code out"
    " (docs/candidates.md)"
)
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
        root = _tree(source[opening.end() : end])
    except YamlError as error:
        return _refused(_yaml_mistake(error, source[:end]))
    findings = Findings()
    key_lines = root.key_lines if isinstance(root, Mapping) else {}
    if isinstance(root, Mapping) and ("launch" in key_lines) == ("variants" in key_lines):
        got = "both" if "launch" in key_lines else "neither"
        message = f"header: exactly one of launch and variants is needed, got {got}"
        findings.error(message, key_lines.get("variants", root.line))
    header = read_record(CandidateHeader, root, "header", Scope(problem), {"lines": key_lines})
    if isinstance(header, tuple):
        return HeaderOutcome(header=None, diagnostics=(*header, *findings.diagnostics))
    if not findings.diagnostics:
        header = _with_variants(header)
        _check_outputs_are_passed(header, problem, findings)
    if not findings.diagnostics:
        _check_conditions(header, problem, findings)
    if findings.diagnostics:
        return HeaderOutcome(header=None, diagnostics=tuple(findings.diagnostics))
    return HeaderOutcome(header=header)


@lru_cache(maxsize=64)  # `declared_macros` asks, too
def _tree(header: str) -> Node:
    return load_yaml(header)


def _with_variants(header: CandidateHeader) -> CandidateHeader:
    if header.variants:
        return header
    only = Variant(when="true", launch=header.launch, line=header.lines["launch"])
    return header.model_copy(update={"variants": (only,)})


def declared_macros(source: str) -> frozenset[str]:
    """Return the macros that the header of `source` asks for: tune names and KOPT_<AXIS>.

    Nothing is checked against a problem; a header with mistakes declares none.
    """
    opening = _OPENING.match(source)
    end = source.find("*/")
    if opening is None or end < 0:
        return frozenset()
    try:
        root = _tree(source[opening.end() : end])
    except YamlError:
        return frozenset()
    entries = root.entries if isinstance(root, Mapping) else {}
    tune, axes = entries.get("tune"), entries.get("specialize")
    names = tune.entries if isinstance(tune, Mapping) else {}
    axis_nodes = axes.items if isinstance(axes, Sequence) else ()
    macros = {f"KOPT_{node.text}" for node in axis_nodes if isinstance(node, Scalar)}
    return frozenset(names) | macros


def _refused(diagnostic: Diagnostic) -> HeaderOutcome:
    return HeaderOutcome(header=None, diagnostics=(diagnostic,))


def _missing_header(source: str) -> Diagnostic:
    late = re.search(r"/\*[\s*]*kopt[ \t]*:", source)
    if late is None:
        message = "the file has no kopt header comment"
        hint = _TORCH if _TORCH_INCLUDE.search(source) else _EXAMPLE
        return Diagnostic(message=message, line=1, hint=hint)
    line = source.count("\n", 0, late.start()) + 1
    message = "the kopt header comment does not open the file"
    return Diagnostic(message=message, line=line, hint=_EXAMPLE)


def _yaml_mistake(error: YamlError, header: str) -> Diagnostic:
    starred = any(line.lstrip().startswith("*") for line in header.splitlines()[1:])
    hint = "header lines have no leading *" if starred else yaml_hint(str(error))
    return Diagnostic(message=f"header: {error}", line=error.line, hint=hint)


def _check_outputs_are_passed(
    header: CandidateHeader, problem: Problem, findings: Findings
) -> None:
    """Report an output that no launch of a variant gets: it could only stay unwritten."""
    mapped = {entry.name: entry.tensor for entry in header.tensor_maps}
    for variant in header.variants:
        names = {argument.name for launch in variant.launch for argument in launch.args}
        passed = names | {mapped[name] for name in names if name in mapped}
        for tensor in problem.tensors:
            if tensor.role != "in" and tensor.name not in passed:
                message = f"the output {tensor.name!r} is passed to no launch"
                findings.error(message, variant.line, "add it to args")


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
    predicate: str, names: MappingOf[str, int], place: tuple[str, int | None], findings: Findings
) -> bool | None:
    key, line = place
    try:
        return evaluate_predicate(predicate, names)
    except ExpressionError as error:
        shown = ", ".join(f"{name}={value}" for name, value in names.items())
        findings.error(f"{key}: {error} in {predicate!r} for {shown}", line)
        return None
