"""`--as flashinfer-trace`: Definition, Solution and Workload files of a FlashInfer-Trace data set.

Tensors that the kernel updates in place are an input and an output there: the generated binding
copies the one into the other before it launches. Packed codes are int8, for the format has no
unsigned bytes.
"""

import json
import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.config.errors import ToolError
from kopt.config.gpu_specs import gpu_for_arch
from kopt.kernels.case_inputs import draw_inputs
from kopt.kernels.input_regimes import REGIMES
from kopt.kernels.oracle import Arrays, expected_at, load_oracle
from kopt.kernels.problem import TensorSpec, Workload

from .exported_kernel import ExportedKernel
from .file_text import filled, measured_speedup
from .signature import Signature
from .trace_definition import TraceDefinition, output_name, trace_definitions
from .type_names import DLPACK_DTYPES, TENSOR_TYPES

AUTHOR = "kopt"
_SEED = 1
_ENTRY = "binding.cu"
_TELLING_REGIMES = (REGIMES[0], REGIMES[-1])
"""Ordinary inputs, and those that exercise everything: masks, too."""


def trace_files(signature: Signature, sources: Mapping[str, str]) -> dict[str, str | bytes]:
    """Return the files of this form beside the test.

    Raises:
        ToolError: The format cannot hold the problem; the message says why.
    """
    exported = signature.exported
    _refuse_unwritten(exported)
    files: dict[str, str | bytes] = {}
    solutions: dict[str, str] = {}
    for definition in trace_definitions(signature):
        place = f"{exported.problem.op_type}/{definition.name}"
        solution = _solution(signature, definition, sources)
        path = f"solutions/{AUTHOR}/{place}/{solution['name']}.json"
        files[f"definitions/{place}.json"] = _json(definition.document)
        files[path] = _json(solution)
        lines: list[str] = []
        for workload in definition.workloads:
            solutions[workload.name] = path
            lines.append(_workload_line(signature, definition, workload, files))
        files[f"workloads/{place}.jsonl"] = "".join(lines)
    words = {
        **signature.words,
        "solutions": solutions,
        "output_names": {output_name(t): t.name for t in _written(signature)},
    }
    files["test/call.py"] = filled("call_trace.py", **words)
    return files


def _json(document: object) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _written(signature: Signature) -> list[TensorSpec]:
    return [tensor for tensor in signature.exported.problem.tensors if tensor.role != "in"]


def _inputs(exported: ExportedKernel, workload: Workload, regime: str) -> Arrays:
    rng = np.random.default_rng([_SEED, 0])
    return draw_inputs(exported.problem, load_oracle(exported.problem), workload, rng, regime)


def _refuse_unwritten(exported: ExportedKernel) -> None:
    """Refuse outputs with elements that must stay as they are: no reference could return them."""
    workload = exported.domain[0]
    scalars = exported.problem.scalar_values(workload)
    oracle = load_oracle(exported.problem)
    for regime in _TELLING_REGIMES:
        inputs = _inputs(exported, workload, regime)
        for name, expected in expected_at(oracle, inputs, scalars, workload).items():
            if not expected.written.all():
                raise ToolError(
                    f"{exported.problem.kernel_id(workload)} may leave elements of {name} as they"
                    " were, which a FlashInfer-Trace Definition cannot say: export it as cuda,"
                    " torch or tvm-ffi"
                )


def _solution(
    signature: Signature, definition: TraceDefinition, sources: Mapping[str, str]
) -> dict[str, object]:
    exported = signature.exported
    device = exported.receipt.device.name if exported.receipt else gpu_for_arch(exported.arch).name
    hardware = device if device.startswith("NVIDIA") else f"NVIDIA {device}"
    texts = {**sources, _ENTRY: _binding(signature)}
    return {
        "name": f"{AUTHOR}_{definition.name}_{exported.candidate.id[:8]}",
        "definition": definition.name,
        "author": AUTHOR,
        "description": f"Written by kopt from {exported.candidate.name}, SHA-256 "
        f"{exported.candidate.id}. {measured_speedup(exported)}",
        "spec": {
            "language": "cuda",
            "target_hardware": [hardware.replace(" ", "_")],
            "entry_point": f"{_ENTRY}::run",
            "dependencies": [],
            "destination_passing_style": True,
            "binding": "tvm-ffi",
        },
        "sources": [{"path": path, "content": text} for path, text in sorted(texts.items())],
    }


def _binding(signature: Signature) -> str:
    """Return the binding: inputs, then outputs; what is updated in place is copied first."""
    written = _written(signature)
    parameters = [f"TensorView {tensor.name}" for tensor in signature.inputs]
    parameters += [f"TensorView {output_name(tensor)}" for tensor in written]
    words = {
        **signature.words,
        "scalars": (),
        "dtypes": DLPACK_DTYPES | {"uint8": DLPACK_DTYPES["int8"]},
        "parameters": parameters,
        "copied": {t.name: output_name(t) for t in written if t.role == "inout"},
        "symbol": "run",
    }
    return filled("tvm_ffi_binding.cu", **words)


def _workload_line(
    signature: Signature,
    definition: TraceDefinition,
    workload: Workload,
    files: dict[str, str | bytes],
) -> str:
    """Return one line of the workloads' file; inputs that are no data of rows go into `files`."""
    exported = signature.exported
    kernel = exported.problem.kernel_id(workload)
    identity = str(uuid.uuid5(uuid.NAMESPACE_URL, f"kopt:{kernel}"))
    kept = {
        name: array
        for name, array in _inputs(exported, workload, REGIMES[0]).items()
        if _is_structure(exported, exported.problem.tensor(name))
    }
    place = f"{exported.problem.op_type}/{definition.name}/{definition.name}_{identity}"
    path = f"blob/workloads/{place}.safetensors"
    if kept:
        files[path] = safetensors_bytes(kept)
    inputs = {
        tensor.name: {"type": "safetensors", "path": path, "tensor_key": tensor.name}
        if tensor.name in kept
        else {"type": "random"}
        for tensor in signature.inputs
    }
    axes = (
        {}
        if definition.variable is None
        else {definition.variable: workload.axes[definition.variable]}
    )
    trace = {
        "definition": definition.name,
        "workload": {"uuid": identity, "axes": axes, "inputs": inputs},
        "solution": None,
        "evaluation": None,
    }
    return json.dumps(trace) + "\n"


def _is_structure(exported: ExportedKernel, tensor: TensorSpec) -> bool:
    """Whether normal random values would be no input: tables, scales, positions, weights."""
    is_data = tensor.dtype.startswith(("bfloat", "float")) and not tensor.static
    return not is_data or exported.problem.row_axis not in tensor.shape


def safetensors_bytes(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return the file that holds `arrays` by name."""
    header: dict[str, Any] = {}
    parts: list[bytes] = []
    place = 0
    for name, array in arrays.items():
        data = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": TENSOR_TYPES[array.dtype.name].safetensors,
            "shape": list(array.shape),
            "data_offsets": [place, place + len(data)],
        }
        parts.append(data)
        place += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the data begins at a multiple of 8 bytes
    return len(text).to_bytes(8, "little") + text + b"".join(parts)
