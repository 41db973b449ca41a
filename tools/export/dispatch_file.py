"""The host functions of an export that choose the build for a shape: `<name>.cu`.

They refuse shapes whose grid would have more blocks in y or z than CUDA starts. In x there may be
2**31 - 1 blocks: no shape with so many fits into a GPU's memory.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from kopt.kernels.expressions import expression_names

from .expression_code import cpp_expression, cpp_predicate
from .file_text import filled
from .routes import Route, variant_of
from .signature import SCRATCH_ALIGNMENT_BYTES, Signature

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
        axes = set(signature.exported.problem.axes)
        for launch in variant_of(signature.exported, route).launch:
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


_LIMIT = 2**31 - 1


def dispatch_file(signature: Signature, routes: tuple[Route, ...]) -> str:
    """Return what chooses between the builds and refuses everything else."""
    header, tensors = signature.exported.header, signature.exported.problem.tensors
    limits = tuple(grid_limits(signature, routes))
    chosen_by = [variant.when for variant in header.variants]
    chosen_by += [text for route in routes for text in (*route.fixed, *_limits(signature, route))]
    pointers = {tensor.name: signature.alignment_bytes(tensor) for tensor in tensors}
    if signature.has_scratch:
        pointers["scratch"] = SCRATCH_ALIGNMENT_BYTES
    return filled(
        "dispatch.cu",
        **signature.words,
        variants=[
            (cpp_predicate(variant.when), list(_choices(signature, routes, place)))
            for place, variant in enumerate(header.variants)
        ],
        chosen_by=chosen_by,
        refused_by=[header.where, *signature.axes, *(limit.text for limit in limits)],
        shape_refusals=list(_shape_refusals(signature)),
        build_refusals=[
            *_unbuilt(signature, routes),
            *((limit.condition, limit.reason) for limit in limits),
        ],
        pointers=pointers,
    )


def _choices(signature: Signature, routes: tuple[Route, ...], variant: int) -> Iterator[str]:
    """Give the lines of one variant: a build for each set of specialised axes, else none."""
    for route in (one for one in routes if one.variant == variant):
        entries = f"launch_{route.tag}"
        if signature.has_scratch:
            entries += f", scratch_bytes_{route.tag}"
        conditions = _conditions(signature, route)
        if not conditions:
            yield f"return {{{entries}}};"
            return
        yield f"if ({' && '.join(conditions)}) return {{{entries}}};"
    yield "return {};"


def _conditions(signature: Signature, route: Route) -> list[str]:
    """Return what a shape of the route's variant must satisfy to take this build."""
    fixed = [f"{axis} == {value}" for axis, value in route.fixed.items()]
    return [*fixed, *(f"({text})" for text in _tune_conditions(signature, route))]


def _tune_conditions(signature: Signature, route: Route) -> Iterator[str]:
    """Give `_limits` with the build's values."""
    values = {name: str(value) for name, value in route.defines.items()}
    for text in _limits(signature, route):
        yield cpp_predicate(text, values)


def _limits(signature: Signature, route: Route) -> list[str]:
    """Return the conditions on tune values that the build's own axes do not settle."""
    settled = {*route.fixed, *signature.computed}
    texts = signature.exported.header.tune_where
    return [text for text in texts if not settled.issuperset(signature.axes_for([text]))]


def served_when(signature: Signature, route: Route) -> str:
    """Return in words when a build's variant is chosen, given that no earlier one was."""
    when = signature.exported.header.variants[route.variant].when.strip()
    if when != "true":
        return when
    return "otherwise" if route.variant else ""


def served_shapes(signature: Signature, route: Route) -> str:
    """Return in words which shapes of its variant a build serves; empty: all."""
    fixed = [f"{axis} = {value}" for axis, value in route.fixed.items()]
    return " with ".join([*fixed, *_tune_conditions(signature, route)])


def _shape_refusals(signature: Signature) -> Iterator[tuple[str, str]]:
    """Give in C++ when a shape is none of the kernel's, with the reason."""
    exported = signature.exported
    for axis in signature.axes:
        least = 0 if axis == exported.problem.row_axis else 1
        yield f"{axis} < {least} || {axis} > {_LIMIT}", f"{axis} must be {least} to {_LIMIT}"
    for axis, number in signature.exact_multiples():
        yield f"{axis} % {number} != 0", f"{axis} must be a multiple of {number}"
    if (where := cpp_predicate(exported.header.where)) != "true":
        yield f"!({where})", f"needs {exported.header.where}"


def _unbuilt(signature: Signature, routes: tuple[Route, ...]) -> Iterator[tuple[str, str]]:
    """Give when no build serves a shape, and the shapes of all in the order of their trial."""
    if signature.exported.unserved or any(_conditions(signature, route) for route in routes):
        pairs = ((served_when(signature, one), served_shapes(signature, one)) for one in routes)
        shapes = "; ".join(dict.fromkeys(" with ".join(filter(None, pair)) for pair in pairs))
        yield "route(params).launch == nullptr", f"built for {shapes} only"
