"""The host functions of an export that choose the build for a shape: `<name>.cu`, `routes.h`.

They refuse shapes whose grid would have more blocks in y or z than CUDA starts. In x there may be
2**31 - 1 blocks: no shape with so many fits into a GPU's memory.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from kopt.kernels.expressions import expression_names

from .expression_code import cpp_expression, cpp_predicate
from .file_text import comment
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


_LIMIT = 2**31 - 1


def routes_file(signature: Signature, routes: tuple[Route, ...]) -> str:
    """Return the declarations of every build's host functions."""
    name = signature.subject.name
    lines = [
        f"cudaError_t launch_{r.tag}(const Params& params, cudaStream_t stream);\n" for r in routes
    ]
    if signature.has_scratch:
        lines += [f"std::size_t scratch_bytes_{r.tag}(const Params& params);\n" for r in routes]
    return (
        "// One function a build; the choice between them is made beside this file.\n"
        "// SPDX-License-Identifier: Apache-2.0\n#pragma once\n\n"
        f'#include "{name}.h"\n\nnamespace {name} {{\n\n{"".join(lines)}\n}}  // namespace {name}\n'
    )


def dispatch_file(signature: Signature, routes: tuple[Route, ...]) -> str:
    """Return what chooses between the builds and refuses everything else."""
    name = signature.subject.name
    scratch = "  std::size_t (*scratch_bytes)(const Params&);\n" if signature.has_scratch else ""
    return (
        f"{comment(f'Which build of {name} serves which shape, and which shapes none serves.')}"
        "// SPDX-License-Identifier: Apache-2.0\n"
        f'#include "{name}.h"\n\n#include "integers.h"\n#include "routes.h"\n\n'
        f"namespace {name} {{\nnamespace {{\n\n"
        "struct Route {\n  cudaError_t (*launch)(const Params&, cudaStream_t);\n"
        f"{scratch}}};\n\n"
        f"{_route_function(signature, routes)}\n"
        "bool is_aligned(const void* address, std::size_t bytes) {\n"
        "  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;\n}\n\n"
        f"}}  // namespace\n\n{_unsupported(signature, routes)}\n{_entry_points(signature)}"
        f"}}  // namespace {name}\n"
    )


def _route_function(signature: Signature, routes: tuple[Route, ...]) -> str:
    """Return the function from a shape to its build: first matching variant, then fixed axes."""
    header = signature.subject.header
    texts = [variant.when for variant in header.variants]
    texts += [text for route in routes for text in (*route.fixed, *_limits(signature, route))]
    lines = ["// Returns the build for a shape; none is returned as a null pointer.\n"]
    lines.append("Route route(const Params& params) {\n" + _locals(signature, texts))
    for place, variant in enumerate(header.variants):
        own = [route for route in routes if route.variant == place]
        condition = cpp_predicate(variant.when)
        is_last = condition == "true"
        indent = "  " if is_last else "    "
        if not is_last:
            lines.append(f"  if ({condition}) {{\n")
        lines += [f"{indent}{line}\n" for line in _choices(signature, own)]
        lines.append("" if is_last else "  }\n")
    if not _locals(signature, texts):
        lines.insert(2, "  (void)params;\n")
    return "".join(lines) + "}\n"


def _choices(signature: Signature, routes: list[Route]) -> Iterator[str]:
    """Give the lines of one variant: a build for each set of specialised axes, else none."""
    for route in routes:
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
    texts = signature.subject.header.tune_where
    return [text for text in texts if not settled.issuperset(signature.axes_for([text]))]


def served_when(signature: Signature, route: Route) -> str:
    """Return in words when a build's variant is chosen, given that no earlier one was."""
    when = signature.subject.header.variants[route.variant].when.strip()
    if when != "true":
        return when
    return "otherwise" if route.variant else ""


def served_shapes(signature: Signature, route: Route) -> str:
    """Return in words which shapes of its variant a build serves; empty: all."""
    fixed = [f"{axis} = {value}" for axis, value in route.fixed.items()]
    return " with ".join([*fixed, *_tune_conditions(signature, route)])


def _unsupported(signature: Signature, routes: tuple[Route, ...]) -> str:
    subject = signature.subject
    rows = subject.problem.row_axis
    limits = tuple(grid_limits(signature, routes))
    texts = [subject.header.where, *signature.axes, *(limit.text for limit in limits)]
    lines = ["const char* unsupported(const Params& params) {\n", _locals(signature, texts)]

    def refuse(condition: str, reason: str) -> None:
        shown = reason.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'  if ({condition}) {{\n    return "{shown}";\n  }}\n')

    for axis in signature.axes:
        least = 0 if axis == rows else 1
        refuse(f"{axis} < {least} || {axis} > {_LIMIT}", f"{axis} must be {least} to {_LIMIT}")
    for axis, number in signature.exact_multiples():
        refuse(f"{axis} % {number} != 0", f"{axis} must be a multiple of {number}")
    if cpp_predicate(subject.header.where) != "true":
        refuse(f"!({cpp_predicate(subject.header.where)})", f"needs {subject.header.where}")
    if rows in signature.axes:
        lines.append(f"  if ({rows} == 0) return nullptr;\n")
    if subject.unserved or any(_conditions(signature, route) for route in routes):
        refuse("route(params).launch == nullptr", f"built for {_built_for(signature, routes)} only")
    for limit in limits:
        refuse(limit.condition, limit.reason)
    for tensor in subject.problem.tensors:
        bytes_ = signature.alignment_bytes(tensor)
        refuse(
            f"params.{tensor.name} == nullptr || !is_aligned(params.{tensor.name}, {bytes_})",
            f"{tensor.name} must be a pointer aligned to {bytes_} bytes",
        )
    if signature.has_scratch:
        refuse(
            "params.scratch == nullptr || !is_aligned(params.scratch, 256)",
            "scratch must be a pointer aligned to 256 bytes",
        )
    return "".join(lines) + "  return nullptr;\n}\n"


def _built_for(signature: Signature, routes: tuple[Route, ...]) -> str:
    """Return the shapes of all builds in words, in the order in which they are tried."""
    words = ((served_when(signature, route), served_shapes(signature, route)) for route in routes)
    return "; ".join(dict.fromkeys(" with ".join(filter(None, pair)) for pair in words))


def _entry_points(signature: Signature) -> str:
    rows = signature.subject.problem.row_axis
    is_empty = f"params.{rows} == 0" if rows in signature.axes else ""
    lines: list[str] = []
    if signature.has_scratch:
        lines.append("std::size_t scratch_bytes(const Params& params) {\n")
        if is_empty:
            lines.append(f"  if ({is_empty}) return 0;\n")
        lines.append("  const Route found = route(params);\n")
        lines.append("  return found.launch == nullptr ? 0 : found.scratch_bytes(params);\n}\n\n")
    lines.append("cudaError_t launch(const Params& params, cudaStream_t stream) {\n")
    lines.append("  if (unsupported(params) != nullptr) return cudaErrorInvalidValue;\n")
    if is_empty:
        lines.append(f"  if ({is_empty}) return cudaSuccess;\n")
    lines.append("  return route(params).launch(params, stream);\n}\n\n")
    return "".join(lines)


def _locals(signature: Signature, texts: list[str]) -> str:
    """Return declarations of the axes that `texts` name."""
    return "".join(
        f"  const std::int64_t {axis} = "
        + (
            cpp_expression(signature.computed[axis])
            if axis in signature.computed
            else f"params.{axis}"
        )
        + ";\n"
        for axis in signature.axes_for(texts)
    )
