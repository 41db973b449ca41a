"""The axes and argument names of a problem.yaml while it is read, and the checks that need them."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from pydantic import ValidationInfo

from kopt.config.near_matches import near_matches

from .expressions import ExpressionError, evaluate_expression
from .yaml_types import Mistake, Unlike, checked_expression

MAX_AXIS = 2**31 - 1

_AXIS_NAME = re.compile(r"[A-Z][A-Z0-9]{0,15}")
_WORKLOAD_NAME = re.compile(r"[a-z][a-z0-9_]{0,199}")


@dataclass
class ProblemScope:
    """What was read so far."""

    axes: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """Axis name to its expression; None for a variable axis."""
    is_whole: bool = True
    """Whether each axis has its value; else no workload can be judged by all of them."""
    arguments: set[str] = field(default_factory=set[str])
    scalars: dict[str, str] = field(default_factory=dict[str, str])
    """The dtype of each scalar."""

    @property
    def variables(self) -> list[str]:
        """The variable axes in file order."""
        return [axis for axis, expression in self.axes.items() if expression is None]


def axis_name(name: str, info: ValidationInfo) -> str:
    """Return the name of an axis, which what follows may use even where it is wrong."""
    if info.context is not None:
        scope = cast(ProblemScope, info.context)
        scope.axes[name] = None
        if not _AXIS_NAME.fullmatch(name):
            raise Mistake(f"{name[:80]!r} does not have the form {_AXIS_NAME.pattern}")
    return name


def axis_value(value: object, info: ValidationInfo) -> object:
    """Return the expression of the axis that was named last, over those above it, or None."""
    if info.context is None:
        return value
    scope = cast(ProblemScope, info.context)
    *above, name = scope.axes
    given: Mapping[str, object] = (
        cast(Mapping[str, object], value) if isinstance(value, Mapping) else {}
    )
    match given:
        case {"var": True} if len(given) == 1:
            return None
        case {"expr": str() | int() as text} if len(given) == 1 and not isinstance(text, bool):
            try:
                scope.axes[name] = checked_expression(str(text), frozenset(above))
            except Mistake as mistake:
                scope.is_whole = False
                raise Mistake(str(mistake), at=("expr",)) from mistake
            return scope.axes[name]
        case _:
            scope.is_whole = False
            raise Mistake("expected either {var: true} or {expr: ...}")


def argument_name(name: str, info: ValidationInfo) -> str:
    """Return the name of a tensor or scalar, which no other has."""
    if info.context is not None:
        names = cast(ProblemScope, info.context).arguments
        if name in names:
            raise Mistake(f"the name {name!r} stands twice")
        names.add(name)
    return name


def scalar_value(value: object, info: ValidationInfo) -> object:
    """Return a finite number that the dtype before it can hold; workloads may then use its name."""
    dtype, name = info.data.get("dtype", "float32"), info.data.get("name")
    if info.context is not None and name is not None:
        cast(ProblemScope, info.context).scalars[name] = dtype
    return _number(value, dtype)


def workload_scalars(value: object, info: ValidationInfo) -> object:
    """Return the values of some of the problem's scalars."""
    if info.context is None or not isinstance(value, dict):
        return value
    dtypes = cast(ProblemScope, info.context).scalars
    for name, number in cast(dict[str, object], value).items():
        if name not in dtypes:
            known = near_matches(name, dtypes)
            raise Mistake(f"{name[:80]!r} is no scalar of the problem; {known}", at=(name,))
        _number(number, dtypes[name], at=(name,))
    return cast(object, value)


def _number(value: object, dtype: str, at: tuple[str, ...] = ()) -> object:
    is_float = dtype == "float32"
    if type(value) is int or (type(value) is float and is_float and math.isfinite(value)):
        return value
    raise Unlike("a finite number" if is_float else "an integer", at=at)


def workload_name(name: str, info: ValidationInfo) -> str:
    """Return the name of a workload; one that looks like axes with values is judged with them."""
    if info.context is not None and not _WORKLOAD_NAME.fullmatch(name):
        raise Mistake(f"{name[:80]!r} does not have the form {_WORKLOAD_NAME.pattern}")
    return name


def axes_name(variables: Iterable[str], values: Mapping[str, int]) -> str:
    """Return the name of a workload that says its variable axes: `r16xc256`."""
    return "x".join(f"{axis.lower()}{values[axis]}" for axis in variables)


def refuse_other_axes(name: str, scope: ProblemScope, axes: Mapping[str, int]) -> None:
    """Refuse a name that says axes with values, and not those of the workload.

    Raises:
        Mistake: It has the name that these axes ask for.
    """
    letters = "|".join(axis.lower() for axis in scope.variables)
    part = rf"(?:{letters})[0-9]+"
    wanted = axes_name(scope.variables, axes)
    if name != wanted and re.fullmatch(rf"{part}(?:x{part})*", name):
        raise Mistake(f"its axes ask for the name {wanted!r}")


def workload_axes(value: object, info: ValidationInfo) -> object:
    """Return the values of all axes, the computed ones from those that are given."""
    if info.context is None or not isinstance(value, dict):
        return value
    given, scope = cast(dict[str, object], value), cast(ProblemScope, info.context)
    for axis, number in given.items():
        if axis not in scope.variables:
            known = near_matches(axis, scope.variables)
            raise Mistake(f"{axis[:80]!r} is no variable axis; {known}", at=(axis,))
        if type(number) is not int or not 1 <= number <= MAX_AXIS:
            raise Unlike(f"an integer 1 to {MAX_AXIS}", at=(axis,))
    if not scope.is_whole:
        return given
    if missing := [axis for axis in scope.variables if axis not in given]:
        raise Mistake(f"no value for {', '.join(missing)}")
    return all_axes(scope.axes, cast(Mapping[str, int], given))


def all_axes(axes: Mapping[str, str | None], given: Mapping[str, int]) -> dict[str, int]:
    """Return the values of all axes of a problem from those of its variable ones.

    Args:
        axes: Axis name to its expression; None for a variable axis.
        given: The values of the variable axes.

    Raises:
        Mistake: A computed axis has no value, or none from 1 to `MAX_AXIS`.
    """
    values: dict[str, int] = {}
    for axis, expression in axes.items():
        try:
            value = given[axis] if expression is None else evaluate_expression(expression, values)
        except ExpressionError as error:
            raise Mistake(f"{axis} = {expression}: {error}") from error
        if not 1 <= value <= MAX_AXIS:
            raise Mistake(f"{axis} = {expression} is {value}; 1 to {MAX_AXIS} is allowed")
        values[axis] = value
    return values
