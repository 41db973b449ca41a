"""One build of the device code, and the host function that launches it: `<name>_<tag>.cu`."""

from collections.abc import Iterable, Iterator
from functools import partial

from kopt.kernels.dtypes import dtype_size_bytes
from kopt.kernels.expressions import evaluate_expression, expression_names
from kopt.kernels.header import ArgumentTemplate, LaunchTemplate, ScratchTemplate, TensorMapTemplate

from .device_code import DeviceCode
from .expression_code import cpp_expression, cpp_product
from .file_text import filled, wrapped
from .routes import Route, variant_of
from .signature import SCRATCH_ALIGNMENT_BYTES, Signature, storage_texts
from .type_names import TENSOR_TYPES, cpp_constant

_CARVEOUT_PERCENT = {"max_l1": 0, "max_shared": 100}
_INTERLEAVES = {"none": "NONE", "16": "16B", "32": "32B"}
_SWIZZLES = {"none": "NONE", "32": "32B", "64": "64B", "128": "128B"}
_L2 = {"none": "NONE", "64": "L2_64B", "128": "L2_128B", "256": "L2_256B"}
_FILLS = {"zero": "NONE", "nan": "NAN_REQUEST_ZERO_FMA"}


def route_file(signature: Signature, route: Route, code: DeviceCode) -> str:
    """Return the text of the file."""
    launches = variant_of(signature.exported, route).launch
    scratch = signature.exported.header.scratch
    scratch_texts = [text for buffer in scratch for text in buffer.shape]
    maps = _maps(signature, route)
    fills = any(buffer.init == "zero" for buffer in scratch)
    return filled(
        "route.cu",
        **signature.words,
        route=route,
        code=code,
        opening=_opening(signature, route),
        scratch=[_buffer_words(buffer) for buffer in scratch],
        scratch_texts=scratch_texts,
        scratch_locals=_locals(signature, scratch_texts),
        locals=_locals(signature, list(_texts(signature, route))),
        maps=[_map_words(signature, entry) for entry in maps],
        uses_error=fills or bool(maps) or len(launches) > 1,
        launches=[
            _launch_words(signature, route, place, follows_fill=fills and place == 0)
            for place in range(len(launches))
        ],
    )


def _opening(signature: Signature, route: Route) -> str:
    fixed = " and ".join(f"{axis} == {value}" for axis, value in route.fixed.items())
    parts = [f"{signature.exported.name}" + (f" with {fixed}" if fixed else "")]
    when = variant_of(signature.exported, route).when
    if len(signature.exported.header.variants) > 1:
        parts.append(f"variant {route.variant + 1} (when: {when})")
    parts.append(f"for {', '.join(route.workloads)}")
    return "; ".join(parts) + "."


def _launch_words(
    signature: Signature, route: Route, place: int, *, follows_fill: bool
) -> dict[str, object]:
    """Return the declaration of one launch, its attributes and its call."""
    launches = variant_of(signature.exported, route).launch
    launch, is_last = launches[place], place == len(launches) - 1
    variable = f"launch{place + 1}" if len(launches) > 1 else "launch"
    kernel = f"{route.tag}::{launch.kernel}"
    occupancy = ", ".join([kernel, cpp_product(launch.block), cpp_expression(launch.smem)])
    arguments = ", ".join([kernel, *(_argument(signature, entry) for entry in launch.args)])
    before = f"  {'return' if is_last else 'error ='} {variable}("
    return {
        "variable": variable,
        "grid": _extent(launch.grid, {"blocks_per_sm": f"resident_blocks({occupancy})"}),
        "block": _extent(launch.block),
        "attributes": list(_attributes(launch, route, programmatic=not follows_fill)),
        "follows_fill": launch.pdl and follows_fill,
        "call": wrapped(f"{arguments});", before, " " * len(before)),
    }


def _attributes(launch: LaunchTemplate, route: Route, *, programmatic: bool) -> Iterator[str]:
    if launch.smem != "0":
        yield f"dynamic_smem({cpp_expression(launch.smem)})"
    if not _is_one_block(launch.cluster, route):
        yield f"cluster({_extent(launch.cluster)})"
    if launch.cooperative:
        yield "cooperative()"
    if launch.carveout != "default":
        yield f"carveout({_CARVEOUT_PERCENT[launch.carveout]})"
    if launch.pdl and programmatic:
        yield "programmatic()"


def _is_one_block(cluster: tuple[str, ...], route: Route) -> bool:
    """Whether a cluster is known to be a single block, for which no attribute is set."""
    if not all(expression_names(text) <= set(route.defines) for text in cluster):
        return False
    return all(evaluate_expression(text, route.defines) == 1 for text in cluster)


def _extent(texts: Iterable[str], names: dict[str, str] | None = None) -> str:
    return "{" + ", ".join(map(partial(cpp_expression, names=names), texts)) + "}"


def _argument(signature: Signature, entry: ArgumentTemplate) -> str:
    if entry.expression is not None:
        wide = "int" if entry.int_type == "int32" else "long long"
        return f"static_cast<{wide}>({cpp_expression(entry.expression)})"
    name = entry.name or ""
    for tensor in signature.exported.problem.tensors:
        if tensor.name == name:
            return f"{'Readable' if tensor.role == 'in' else 'Writable'}{{params.{name}}}"
    for scalar in signature.exported.problem.scalars:
        if scalar.name == name:
            return f"params.{name}" if scalar in signature.scalars else cpp_constant(scalar)
    return name  # an axis, a scratch buffer or a tensor map: a local variable


def _texts(signature: Signature, route: Route) -> Iterator[str]:
    """Give every expression that the host function evaluates."""
    for launch in variant_of(signature.exported, route).launch:
        yield from (*launch.grid, *launch.block, *launch.cluster, launch.smem)
        yield from (entry.expression for entry in launch.args if entry.expression is not None)
        axes = signature.exported.problem.axes
        yield from (entry.name for entry in launch.args if entry.name in axes)
    for buffer in signature.exported.header.scratch:
        yield from buffer.shape
    for entry in _maps(signature, route):
        yield from (*_view(signature, entry), *entry.box, *(entry.element_strides or ()))


def _locals(signature: Signature, texts: list[str]) -> list[str]:
    """Return declarations of the axes, and of SM_COUNT, that `texts` name."""
    lines = signature.locals(texts)
    if any("SM_COUNT" in text for text in texts):
        lines.append("  const std::int64_t SM_COUNT = multiprocessors();")
    return lines


def _buffer_words(buffer: ScratchTemplate) -> dict[str, str]:
    size = cpp_product([*buffer.shape, str(dtype_size_bytes(buffer.dtype))])
    padded = f"align_up({size}, {SCRATCH_ALIGNMENT_BYTES})"
    return {"name": buffer.name, "init": buffer.init, "bytes": size, "padded_bytes": padded}


def _maps(signature: Signature, route: Route) -> list[TensorMapTemplate]:
    """Return the tensor maps that the route's launches take."""
    launches = variant_of(signature.exported, route).launch
    taken = {entry.name for launch in launches for entry in launch.args}
    return [one for one in signature.exported.header.tensor_maps if one.name in taken]


def _map_words(signature: Signature, entry: TensorMapTemplate) -> dict[str, object]:
    """Return what the declaration of a tensor map says."""
    dtype, shape = _buffer(signature, entry)
    rank = len(entry.view or shape)
    strides = entry.element_strides or ("1",) * rank
    is_scratch = any(buffer.name == entry.tensor for buffer in signature.exported.header.scratch)
    return {
        "name": entry.name,
        "rank": rank,
        "dtype": TENSOR_TYPES[dtype].tensor_map,
        "element_bytes": dtype_size_bytes(dtype),
        "lists": ", ".join(map(_extent, (_view(signature, entry), entry.box, strides))),
        "interleave": _INTERLEAVES[entry.interleave],
        "swizzle": _SWIZZLES[entry.swizzle],
        "l2": _L2[entry.l2],
        "fill": _FILLS[entry.fill],
        "address": f"{entry.tensor}.address" if is_scratch else f"params.{entry.tensor}",
    }


def _view(signature: Signature, entry: TensorMapTemplate) -> tuple[str, ...]:
    return entry.view or _buffer(signature, entry)[1]


def _buffer(signature: Signature, entry: TensorMapTemplate) -> tuple[str, tuple[str, ...]]:
    """Return dtype and shape of the tensor or scratch buffer below a map."""
    for buffer in signature.exported.header.scratch:
        if buffer.name == entry.tensor:
            return buffer.dtype, buffer.shape
    tensor = signature.exported.problem.tensor(entry.tensor)
    return tensor.dtype, storage_texts(tensor) or ("1",)
