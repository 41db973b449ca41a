"""The names that a candidate's header declares and may use, and the checks of names by them."""

import re
from dataclasses import dataclass, field
from typing import cast

from pydantic import AfterValidator, ValidationInfo

from kopt.config.near_matches import near_matches

from .problem import Problem
from .yaml_types import UNQUOTED, Mistake, Unlike, checked_expression

_TUNE_NAME = re.compile(r"[A-Z][A-Z0-9_]{2,31}")
_TUNE_FORM = (
    "a tune name has 3 to 32 of A-Z, 0-9 and _, a letter first; it is a macro, and a shorter one "
    "would rename things in CUDA's headers"
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_TEMPLATE_HINT = (
    "a template or a member of a namespace is launched by a wrapper: make it __device__ instead of"
    ' __global__, and call it from an extern "C" __global__ void function that names its arguments'
)
_BUILTIN_NAMES = frozenset({"SM_COUNT"})


@dataclass
class Scope:
    """The names that a header may use, growing as its sections are read."""

    problem: Problem
    tune: set[str] = field(default_factory=set[str])
    buffers: dict[str, str] = field(default_factory=dict[str, str])
    """Scratch buffers and tensor maps by name, with what they are."""

    @property
    def axes(self) -> frozenset[str]:
        """Every axis of the problem."""
        return frozenset(self.problem.axes)

    @property
    def conditions(self) -> frozenset[str]:
        """The names of `tune_where`: axes and tune names."""
        return self.axes | self.tune

    @property
    def values(self) -> frozenset[str]:
        """The names of expressions: axes, tune names, SM_COUNT."""
        return self.conditions | _BUILTIN_NAMES

    @property
    def grid_values(self) -> frozenset[str]:
        """The names of expressions of a grid."""
        return self.values | {"blocks_per_sm"}

    @property
    def mapped(self) -> frozenset[str]:
        """What a tensor map may be of."""
        return frozenset(n for n, k in self.arguments.items() if k in ("tensor", "scratch"))

    @property
    def arguments(self) -> dict[str, str]:
        """Everything that `args` may name, with what it is."""
        return {
            **dict.fromkeys(self.problem.axes, "axis"),
            **{tensor.name: "tensor" for tensor in self.problem.tensors},
            **{scalar.name: "scalar" for scalar in self.problem.scalars},
            **self.buffers,
        }


def declared(what: str) -> AfterValidator:
    """Mark the name of a scratch buffer or tensor map, and add it to the scope."""

    def declare(name: str, info: ValidationInfo) -> str:
        scope = cast(Scope, info.context)
        taken = {**scope.arguments, **dict.fromkeys(scope.tune, "tune value")}
        if name in taken:
            raise Mistake(f"{name!r} is already the name of a {taken[name]}")
        scope.buffers[name] = what
        return name

    return AfterValidator(declare)


def identifier(name: str) -> str:
    """Return a C identifier."""
    if not _IDENTIFIER.fullmatch(name):
        hint = _TEMPLATE_HINT if "<" in name or "::" in name else None
        raise Mistake(f"{name[:80]!r} is no C identifier of at most 128 characters", hint)
    return name


def tune_name(name: str, info: ValidationInfo) -> str:
    """Return the name of a tune value, which is added to the scope."""
    scope = cast(Scope, info.context)
    reason = None
    if name in scope.axes:
        reason = "is an axis of the problem; choose another name"
    elif not _TUNE_NAME.fullmatch(name):
        reason = f"has the wrong form: {_TUNE_FORM} (rename it, e.g. {_example(name)})"
    elif name.startswith("KOPT_") or name in _BUILTIN_NAMES:
        reason = "is reserved for kopt"
    elif name in scope.arguments:
        reason = f"is already the name of a {scope.arguments[name]}"
    if reason is not None:
        raise Mistake(f"{name[:80]!r} {reason}")
    scope.tune.add(name)
    return name


def _example(name: str) -> str:
    """Return a name of the right form that reminds of a wrong one."""
    letters = re.sub(r"[^A-Z0-9_]", "", name.upper()).lstrip("0123456789_")[:20]
    return letters if _TUNE_NAME.fullmatch(letters) else f"{letters or 'MY'}_VALUE"


def argument(value: object, info: ValidationInfo) -> object:
    """Return an entry of `args` as its record's fields."""
    scope = cast(Scope, info.context)
    if isinstance(value, dict):
        return _typed_argument(cast(dict[str, object], value), scope)
    if isinstance(value, int):
        raise Mistake(f"a number needs its type: {{int32: {str(value)[:20]}}}")
    if not isinstance(value, str):
        raise Unlike("text")
    if value in scope.arguments:
        return {"name": value}
    if value in scope.values:
        raise Mistake(f"{value!r} is no argument by name; write {{int32: {value}}}")
    raise Mistake(f"unknown argument {value[:80]!r}; {near_matches(value, scope.arguments)}")


def _typed_argument(value: dict[str, object], scope: Scope) -> object:
    for key in value:
        if key not in ("int32", "int64"):
            known = near_matches(key, ("int32", "int64"))
            hint = UNQUOTED if value[key] is None else None
            raise Mistake(f"unknown key {key!r}; {known}", hint)
    if len(value) != 1:
        raise Mistake("expected {int32: expr} or {int64: expr}")
    ((int_type, text),) = value.items()
    if isinstance(text, bool) or not isinstance(text, str | int):
        raise Mistake("expected an expression", at=(int_type,))
    return {"int_type": int_type, "expression": checked_expression(str(text), scope.values)}
