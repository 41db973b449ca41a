"""Windows that slide over the last dimensions of a value: of convolutions and pools."""

from collections.abc import Sequence
from dataclasses import dataclass

from .body import Body
from .sizes import Size
from .values import Guarded, Index, Value


@dataclass(frozen=True)
class Window:
    """How a window lies along one dimension."""

    extent: Size
    """Its length."""
    step: Size
    padding: Size
    dilation: Size


def windows(
    value: Value, along: Sequence[Window], counts: Sequence[Size], outside: float
) -> Guarded:
    """Return the elements under each window.

    Args:
        value: The windows slide over its last dimensions.
        along: A window for each of them.
        counts: How many places each has.
        outside: What is read beyond the edges.

    Returns:
        Of the leading dimensions, then the places, then the places within the window.
    """
    spatial = len(along)
    lead = len(value.shape) - spatial
    shape = (*value.shape[:lead], *counts, *(one.extent for one in along))

    def place(body: Body, index: Index) -> tuple[str, Index]:
        at = [
            read_at(body, one, index[lead + number], index[lead + spatial + number])
            for number, one in enumerate(along)
        ]
        tests = [
            test
            for one, name, extent in zip(along, at, value.shape[lead:], strict=True)
            for test in _inside(one, name, extent)
        ]
        return " && ".join(tests), (*index[:lead], *at)

    return Guarded(value, shape, place, outside)


def read_at(body: Body, window: Window, place: str, within: str) -> str:
    """Return where a window at `place` reads its element `within`."""
    text = place if window.step.literal == 1 else f"{place} * {window.step.factor}"
    if window.padding.literal != 0:
        text += f" - {window.padding.factor}"
    if within != "0":
        scaled = within if window.dilation.literal == 1 else f"{within} * {window.dilation.factor}"
        text += f" + {scaled}"
    return body.let("Index", text)


def _inside(window: Window, at: str, extent: Size) -> list[str]:
    tests = [] if window.padding.literal == 0 else [f"{at} >= 0"]
    return [*tests, f"{at} < {extent.code}"]


def transposed(
    value: Value, along: Sequence[Window], counts: Sequence[Size], outside: float = 0.0
) -> Guarded:
    """Return what each place of a transposed convolution is computed from.

    Args:
        value: What was convolved, its last dimensions along the windows.
        along: A window for each.
        counts: Extents of the result.
        outside: What stands for places that no element reaches.

    Returns:
        Of the leading dimensions, then the result's, then the places within the window.
    """
    spatial = len(along)
    lead = len(value.shape) - spatial
    shape = (*value.shape[:lead], *counts, *(one.extent for one in along))

    def place(body: Body, index: Index) -> tuple[str, Index]:
        found: list[str] = []
        tests: list[str] = []
        for number, window in enumerate(along):
            result, within = index[lead + number], index[lead + spatial + number]
            scaled = (
                within if window.dilation.literal == 1 else f"{within} * {window.dilation.factor}"
            )
            moved = body.let("Index", f"{result} + {window.padding.factor} - {scaled}")
            step = window.step
            at = moved if step.literal == 1 else body.let("Index", f"{moved} / {step.factor}")
            tests.append(f"{moved} >= 0")
            if step.literal != 1:
                tests.append(f"{moved} % {step.factor} == 0")
            tests.append(f"{at} < {value.shape[lead + number].code}")
            found.append(at)
        return " && ".join(tests), (*index[:lead], *found)

    return Guarded(value, shape, place, outside)
