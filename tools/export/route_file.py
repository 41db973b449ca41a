"""One build of the device code, and the host function that launches it: `<name>_<tag>.cu`."""

from collections.abc import Iterator

from kopt.kernels.dtypes import dtype_size_bytes
from kopt.kernels.expressions import evaluate_expression, expression_names
from kopt.kernels.header import ArgumentTemplate, LaunchTemplate, ScratchTemplate, TensorMapTemplate

from .device_code import DeviceCode
from .expression_code import cpp_expression, cpp_product
from .file_text import comment
from .routes import Route, variant_of
from .signature import SCRATCH_ALIGNMENT_BYTES, Signature, storage_texts

_CHECK = "  if (error != cudaSuccess) return error;\n"
_CARVEOUT_PERCENT = {"max_l1": 0, "max_shared": 100}


def route_file(signature: Signature, route: Route, code: DeviceCode) -> str:
    """Return the text of the file."""
    name = signature.subject.name
    includes = "".join(f"#include {include}\n" for include in code.includes)
    own = ["launching.h", "routes.h"]
    if _maps(signature, route):
        own.insert(1, "tensor_map.h")
    local = "".join(f'#include "{file}"\n' for file in own)
    defines = "".join(f"#define {key} {value}\n" for key, value in sorted(route.defines.items()))
    defines += "\n" if defines else ""
    return (
        f"{comment(_opening(signature, route))}// SPDX-License-Identifier: Apache-2.0\n"
        f"{includes}\n{local}\n{defines}"
        f"namespace {name} {{\nnamespace {route.tag} {{\n\n"
        f'#include "{name}_device.cuh"\n\n'
        f"}}  // namespace {route.tag}\n\n{_scratch_function(signature, route)}"
        f"{_launch_function(signature, route)}\n}}  // namespace {name}\n"
    )


def _opening(signature: Signature, route: Route) -> str:
    fixed = " and ".join(f"{axis} == {value}" for axis, value in route.fixed.items())
    parts = [f"{signature.subject.name}" + (f" with {fixed}" if fixed else "")]
    when = variant_of(signature.subject, route).when
    if len(signature.subject.header.variants) > 1:
        parts.append(f"variant {route.variant + 1} (when: {when})")
    parts.append(f"for {', '.join(route.workloads)}")
    return "; ".join(parts) + "."


def _launch_function(signature: Signature, route: Route) -> str:
    launches = variant_of(signature.subject, route).launch
    lines = [
        f"cudaError_t launch_{route.tag}(const Params& params, cudaStream_t stream) {{\n",
        _locals(signature, list(_texts(signature, route))),
        "  cudaError_t error = cudaSuccess;\n",
        *_scratch_lines(signature),
        *(encoded_map(signature, entry) for entry in _maps(signature, route)),
    ]
    follows_fill = any(entry.init == "zero" for entry in signature.subject.header.scratch)
    for number, launch in enumerate(launches):
        is_last = number == len(launches) - 1
        variable = f"launch{number + 1}" if len(launches) > 1 else "launch"
        lines.append(_launch(signature, route, launch, variable))
        if launch.pdl and not (number == 0 and follows_fill):
            lines.append(f"  {variable}.programmatic();\n")
        elif launch.pdl:
            lines.append(
                "  // A programmatic dependency is between kernels; a fill precedes this.\n"
            )
        arguments = [f"{route.tag}::{launch.kernel}"]
        arguments += [_argument(signature, entry) for entry in launch.args]
        call = _wrapped(f"{variable}(", arguments, 11 if is_last else 10)
        lines.append(f"  return {call};\n" if is_last else f"  error = {call};\n{_CHECK}")
    if not any("error = " in line for line in lines[3:]):
        lines[2] = ""
    return "".join(lines) + "}\n"


def _launch(signature: Signature, route: Route, launch: LaunchTemplate, variable: str) -> str:
    """Return the lines that configure one launch."""
    words = [
        f"{route.tag}::{launch.kernel}",
        cpp_product(launch.block),
        cpp_expression(launch.smem),
    ]
    resident = f"resident_blocks({', '.join(words)})"
    grid = _extent(launch.grid, {"blocks_per_sm": resident})
    lines = [f"  Launch {variable}({grid}, {_extent(launch.block)}, stream);\n"]
    if launch.smem != "0":
        lines.append(f"  {variable}.dynamic_smem({cpp_expression(launch.smem)});\n")
    if not _is_one_block(launch.cluster, route):
        lines.append(f"  {variable}.cluster({_extent(launch.cluster)});\n")
    if launch.cooperative:
        lines.append(f"  {variable}.cooperative();\n")
    if launch.carveout != "default":
        lines.append(f"  {variable}.carveout({_CARVEOUT_PERCENT[launch.carveout]});\n")
    return "".join(lines)


def _is_one_block(cluster: tuple[str, ...], route: Route) -> bool:
    """Whether a cluster is known to be a single block, for which no attribute is set."""
    if not all(expression_names(text) <= set(route.defines) for text in cluster):
        return False
    return all(evaluate_expression(text, route.defines) == 1 for text in cluster)


def _extent(texts: tuple[str, ...], names: dict[str, str] | None = None) -> str:
    return "{" + ", ".join(cpp_expression(text, names) for text in texts) + "}"


def _argument(signature: Signature, entry: ArgumentTemplate) -> str:
    if entry.expression is not None:
        wide = "int" if entry.int_type == "int32" else "long long"
        return f"static_cast<{wide}>({cpp_expression(entry.expression)})"
    name = entry.name or ""
    for tensor in signature.subject.problem.tensors:
        if tensor.name == name:
            kind = "Readable" if tensor.role == "in" else "Writable"
            return f"{kind}{{params.{name}}}"
    for scalar in signature.subject.problem.scalars:
        if scalar.name == name:
            is_taken = scalar in signature.scalars
            return f"params.{name}" if is_taken else _constant(scalar.dtype, scalar.value)
    return name  # an axis, a scratch buffer or a tensor map: a local variable


def _constant(dtype: str, value: float | int) -> str:
    return f"{value!r}f" if dtype == "float32" else str(value)


def _texts(signature: Signature, route: Route) -> Iterator[str]:
    """Give every expression that the host function evaluates."""
    for launch in variant_of(signature.subject, route).launch:
        yield from (*launch.grid, *launch.block, *launch.cluster, launch.smem)
        yield from (entry.expression for entry in launch.args if entry.expression is not None)
        axes = signature.subject.problem.axes
        yield from (entry.name for entry in launch.args if entry.name in axes)
    for entry in signature.subject.header.scratch:
        yield from entry.shape
    for one in _maps(signature, route):
        yield from map_texts(signature, one)


def _locals(signature: Signature, texts: list[str]) -> str:
    """Return declarations of the axes, and of SM_COUNT, that `texts` name."""
    lines = [
        f"  const std::int64_t {axis} = "
        + (
            cpp_expression(signature.computed[axis])
            if axis in signature.computed
            else f"params.{axis}"
        )
        + ";\n"
        for axis in signature.axes_for(texts)
    ]
    if any("SM_COUNT" in text for text in texts):
        lines.append("  const std::int64_t SM_COUNT = multiprocessors();\n")
    return "".join(lines)


def _maps(signature: Signature, route: Route) -> list[str]:
    """Return the names of the tensor maps that the route's launches take."""
    launches = variant_of(signature.subject, route).launch
    taken = {entry.name for launch in launches for entry in launch.args}
    return [one.name for one in signature.subject.header.tensor_maps if one.name in taken]


def _scratch_function(signature: Signature, route: Route) -> str:
    """Return the function that adds up the route's scratch buffers; nothing if it has none."""
    buffers = signature.subject.header.scratch
    if not buffers:
        return ""
    parts = " +\n         ".join(
        f"align_up({_bytes(b)}, {SCRATCH_ALIGNMENT_BYTES})" for b in buffers
    )
    texts = [text for buffer in buffers for text in buffer.shape]
    axes = _locals(signature, texts)
    unused = "" if signature.axes_for(texts) else "  (void)params;\n"
    return (
        f"std::size_t scratch_bytes_{route.tag}(const Params& params) {{\n{axes}{unused}"
        f"  return {parts};\n}}\n\n"
    )


def _scratch_lines(signature: Signature) -> Iterator[str]:
    buffers = signature.subject.header.scratch
    if not buffers:
        return
    yield "  char* place = static_cast<char*>(params.scratch);\n"
    for number, buffer in enumerate(buffers):
        yield f"  const Writable {buffer.name}{{place}};\n"
        if buffer.init == "zero":
            yield f"  error = cudaMemsetAsync(place, 0, {_bytes(buffer)}, stream);\n{_CHECK}"
        if number < len(buffers) - 1:
            yield f"  place += align_up({_bytes(buffer)}, {SCRATCH_ALIGNMENT_BYTES});\n"


def _bytes(buffer: ScratchTemplate) -> str:
    return cpp_product([*buffer.shape, str(dtype_size_bytes(buffer.dtype))])


def _wrapped(opening: str, arguments: list[str], indent: int) -> str:
    """Return a call, broken into lines below its opening parenthesis."""
    column = indent + len(opening) - 2
    lines: list[str] = []
    line = ""
    for number, argument in enumerate(arguments):
        word = argument + (")" if number == len(arguments) - 1 else ", ")
        if line and column + len(line) + len(word) > 98:
            lines.append(line.rstrip())
            line = ""
        line += word
    return opening + ("\n" + " " * column).join([*lines, line])


_TYPES = {
    "bool": "UINT8",
    "uint8": "UINT8",
    "int8": "UINT8",
    "float8_e4m3fn": "UINT8",
    "float8_e5m2": "UINT8",
    "int16": "UINT16",
    "uint32": "UINT32",
    "int32": "INT32",
    "int64": "INT64",
    "float16": "FLOAT16",
    "float32": "FLOAT32",
    "float64": "FLOAT64",
    "bfloat16": "BFLOAT16",
}
_INTERLEAVES = {"none": "NONE", "16": "16B", "32": "32B"}
_SWIZZLES = {"none": "NONE", "32": "32B", "64": "64B", "128": "128B"}
_L2 = {"none": "NONE", "64": "L2_64B", "128": "L2_128B", "256": "L2_256B"}
_FILLS = {"zero": "NONE", "nan": "NAN_REQUEST_ZERO_FMA"}


def map_texts(signature: Signature, name: str) -> tuple[str, ...]:
    """Return every expression of a tensor map, those of its tensor's shape where it has no view."""
    entry = _entry(signature, name)
    return (*_view(signature, entry), *entry.box, *(entry.element_strides or ()))


def encoded_map(signature: Signature, name: str) -> str:
    """Return the lines that declare and encode a tensor map."""
    entry = _entry(signature, name)
    dtype, shape = _buffer(signature, entry)
    rank = len(entry.view or shape)
    strides = entry.element_strides or ("1",) * rank
    lists = ", ".join(
        "{" + ", ".join(cpp_expression(text) for text in texts) + "}"
        for texts in (_view(signature, entry), entry.box, strides)
    )
    is_scratch = any(buffer.name == entry.tensor for buffer in signature.subject.header.scratch)
    address = f"{entry.tensor}.address" if is_scratch else f"params.{entry.tensor}"
    return (
        f"  CUtensorMap {name};\n"
        f"  error = encode(&{name},\n"
        f"                 TiledMap<{rank}>{{CU_TENSOR_MAP_DATA_TYPE_{_TYPES[dtype]},"
        f" {dtype_size_bytes(dtype)}, {lists},\n"
        f"                             CU_TENSOR_MAP_INTERLEAVE_{_INTERLEAVES[entry.interleave]},"
        f" CU_TENSOR_MAP_SWIZZLE_{_SWIZZLES[entry.swizzle]},\n"
        f"                             CU_TENSOR_MAP_L2_PROMOTION_{_L2[entry.l2]},\n"
        f"                             CU_TENSOR_MAP_FLOAT_OOB_FILL_{_FILLS[entry.fill]}}},\n"
        f"                 {address});\n"
        "  if (error != cudaSuccess) return error;\n"
    )


def _entry(signature: Signature, name: str) -> TensorMapTemplate:
    return next(one for one in signature.subject.header.tensor_maps if one.name == name)


def _view(signature: Signature, entry: TensorMapTemplate) -> tuple[str, ...]:
    return entry.view or _buffer(signature, entry)[1]


def _buffer(signature: Signature, entry: TensorMapTemplate) -> tuple[str, tuple[str, ...]]:
    """Return dtype and shape of the tensor or scratch buffer below a map."""
    for buffer in signature.subject.header.scratch:
        if buffer.name == entry.tensor:
            return buffer.dtype, buffer.shape
    tensor = signature.subject.problem.tensor(entry.tensor)
    return tensor.dtype, storage_texts(tensor) or ("1",)
