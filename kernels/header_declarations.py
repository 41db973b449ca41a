"""What a candidate's header declares: tune values, scratch buffers and tensor maps, with the scope.

Each reader turns YAML into templates and reports mistakes into `Findings`. Launches and variants
are `header_launches.py`'s; `header_parser.py` finds the header and puts the parts together.
"""

import re
from dataclasses import dataclass, field
from math import prod

from kopt.config.near_matches import near_matches

from .dtypes import DTYPE_SIZE_BYTES
from .header import ScratchTemplate, TensorMapTemplate
from .problem import Problem
from .strict_yaml import Node, Sequence
from .yaml_fields import IDENTIFIER, Fields, Findings, described, integer_of, keys_of, predicate_of

MAX_TUNE_CHOICES = 65_536
MAX_MAP_RANK = 5
INT32 = (-(2**31), 2**31 - 1)

_TUNE_NAME = re.compile(r"[A-Z][A-Z0-9_]{2,31}")
_TUNE_FORM = (
    "a tune name has 3 to 32 of A-Z, 0-9 and _, a letter first; it is a macro, and a shorter one "
    "would rename things in CUDA's headers"
)
_BUILTIN_NAMES = frozenset({"SM_COUNT"})


@dataclass
class Scope:
    """The names that a header may use, growing as its sections are read."""

    problem: Problem
    findings: Findings
    tune: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    buffers: dict[str, str] = field(default_factory=dict[str, str])
    """Scratch buffers and tensor maps by name, with what they are."""

    @property
    def axes(self) -> frozenset[str]:
        """Every axis of the problem."""
        return frozenset(self.problem.axes)

    @property
    def values(self) -> frozenset[str]:
        """The names of expressions: axes, tune names, SM_COUNT."""
        return self.axes | frozenset(self.tune) | _BUILTIN_NAMES

    def arguments(self) -> dict[str, str]:
        """Return everything that `args` may name, with what it is."""
        return {
            **dict.fromkeys(self.problem.axes, "axis"),
            **{tensor.name: "tensor" for tensor in self.problem.tensors},
            **{scalar.name: "scalar" for scalar in self.problem.scalars},
            **self.buffers,
        }

    def declare(self, name: str, what: str, line: int) -> bool:
        """Add a scratch buffer or tensor map; False, with a report, if the name cannot be used."""
        taken = {**self.arguments(), **dict.fromkeys(self.tune, "tune value")}
        if not IDENTIFIER.fullmatch(name):
            self.findings.error(f"{what}: {name[:80]!r} is no C identifier", line)
        elif name in taken:
            self.findings.error(f"{what}: {name!r} is already the name of a {taken[name]}", line)
        else:
            self.buffers[name] = what
            return True
        return False


def read_tune(fields: Fields, scope: Scope) -> None:
    """Read `tune` into the scope: names, and value lists with the default first."""
    for name, (node, line) in fields.entries("tune").items():
        if _tune_name_is_free(name, line, scope):
            values = _tune_values(name, node, scope.findings)
            if values:
                scope.tune[name] = values
    choices = prod(len(values) for values in scope.tune.values())
    if choices > MAX_TUNE_CHOICES:
        fields.error("tune", f"{choices} combinations; at most {MAX_TUNE_CHOICES} are allowed")


def _tune_name_is_free(name: str, line: int, scope: Scope) -> bool:
    reason = None
    if name in scope.axes:
        reason = "is an axis of the problem; choose another name"
    elif not _TUNE_NAME.fullmatch(name):
        reason = f"has the wrong form: {_TUNE_FORM} (rename it, e.g. {_example(name)})"
    elif name.startswith("KOPT_") or name in _BUILTIN_NAMES:
        reason = "is reserved for kopt"
    elif name in scope.arguments():
        reason = f"is already the name of a {scope.arguments()[name]}"
    if reason is not None:
        scope.findings.error(f"tune: {name[:80]!r} {reason}", line)
    return reason is None


def _example(name: str) -> str:
    """Return a name of the right form that reminds of a wrong one."""
    letters = re.sub(r"[^A-Z0-9_]", "", name.upper()).lstrip("0123456789_")[:20]
    return letters if _TUNE_NAME.fullmatch(letters) else f"{letters or 'MY'}_VALUE"


def _tune_values(name: str, node: Node, findings: Findings) -> tuple[int, ...]:
    what = f"tune: {name}"
    if not isinstance(node, Sequence):
        findings.error(f"{what}: expected a list of integers, got {described(node)}", node.line)
        return ()
    if not node.items:
        findings.error(f"{what}: the list is empty; its first value is the default", node.line)
    values: list[int] = []
    for item in node.items:
        value = integer_of(item, what, INT32, findings)
        if value is not None and value in values:
            findings.error(f"{what}: the value {value} stands twice", item.line)
        elif value is not None:
            values.append(value)
    return tuple(values)


def read_tune_where(fields: Fields, scope: Scope) -> tuple[str, ...]:
    """Return the conditions over tune names and axes."""
    names = scope.axes | frozenset(scope.tune)
    return tuple(
        predicate_of(node, "header: tune_where", names, scope.findings)
        for node in fields.items("tune_where")
    )


def read_scratch(fields: Fields, scope: Scope) -> tuple[ScratchTemplate, ...]:
    """Return the scratch buffers."""
    buffers: list[ScratchTemplate] = []
    for name, (node, line) in fields.entries("scratch").items():
        if not scope.declare(name, "scratch", line):
            continue
        entry = Fields(node, f"scratch {name}", keys_of(ScratchTemplate), scope.findings)
        entry.require("dtype", "shape")
        dtype = entry.choice("dtype", tuple(DTYPE_SIZE_BYTES), "uint8")
        shape = entry.expressions("shape", scope.values, 3)
        buffers.append(
            ScratchTemplate(
                name=name,
                dtype=dtype,
                shape=shape,
                init=entry.choice("init", ("poison", "zero"), "poison"),
                line=line,
            )
        )
    return tuple(buffers)


def read_tensor_maps(fields: Fields, scope: Scope) -> tuple[TensorMapTemplate, ...]:
    """Return the TMA descriptors."""
    maps: list[TensorMapTemplate] = []
    for name, (node, line) in fields.entries("tensor_maps").items():
        buffers = {n: k for n, k in scope.arguments().items() if k in ("tensor", "scratch")}
        if not scope.declare(name, "tensor map", line):
            continue
        entry = Fields(node, f"tensor map {name}", keys_of(TensorMapTemplate), scope.findings)
        entry.require("tensor", "box")
        tensor = entry.text("tensor")
        if tensor and tensor not in buffers:
            entry.error("tensor", f"unknown tensor {tensor!r}; {near_matches(tensor, buffers)}")
        strides = entry.expressions("element_strides", scope.values, MAX_MAP_RANK, ())
        maps.append(
            TensorMapTemplate(
                name=name,
                tensor=tensor,
                view=entry.expressions("view", scope.values, MAX_MAP_RANK, ()) or None,
                box=entry.expressions("box", scope.values, MAX_MAP_RANK),
                element_strides=strides or None,
                swizzle=entry.choice("swizzle", ("none", "32", "64", "128"), "none"),
                interleave=entry.choice("interleave", ("none", "16", "32"), "none"),
                l2=entry.choice("l2", ("none", "64", "128", "256"), "none"),
                fill=entry.choice("fill", ("zero", "nan"), "zero"),
                line=line,
            )
        )
    return tuple(maps)
