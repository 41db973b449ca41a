"""Shapes whose grid would have more blocks in y or z than CUDA starts, and the reasons in words.

In x there may be 2**31 - 1 blocks: no shape with so many fits into a GPU's memory.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from kopt.kernels.expressions import expression_names

from .expression_code import cpp_expression
from .routes import Route, variant_of
from .signature import Signature

_MOST_BLOCKS = 65535
"""In y and in z. Source: CUDA programming guide, technical specifications."""


@dataclass(frozen=True)
class GridLimit:
    """One extent, of all builds that launch with it."""

    text: str
    """The extent as the header has it."""
    condition: str
    """C++: such a build is chosen and the extent is too large."""
    reason: str


def grid_limits(signature: Signature, routes: tuple[Route, ...]) -> Iterator[GridLimit]:
    """Give the extents that grow with the shape; those that follow the GPU's size are in bounds."""
    builds: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for route in routes:
        values = {name: str(value) for name, value in route.defines.items()}
        axes = set(signature.subject.problem.axes)
        for launch in variant_of(signature.subject, route).launch:
            for direction, text in zip("yz", launch.grid[1:], strict=False):
                names = expression_names(text)
                if names & axes and names <= axes | set(values):
                    reason = (
                        f"{launch.kernel} would have {text} blocks in {direction}, "
                        f"of at most {_MOST_BLOCKS}"
                    )
                    builds[text, cpp_expression(text, values), reason].append(route.tag)
    for (text, extent, reason), tags in builds.items():
        condition = f"{extent} > {_MOST_BLOCKS}"
        if len(set(tags)) < len(routes):
            chosen = " || ".join(f"route(params).launch == launch_{tag}" for tag in tags)
            condition = f"({chosen}) && {condition}"
        yield GridLimit(text, condition, reason)
