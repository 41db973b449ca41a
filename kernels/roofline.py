"""The least work that a problem asks for: bytes, floating-point operations, and floors from them.

Everything here is computed from problem.yaml and the data sheets. It predicts no time: launch
latency, cache hits and traffic that a candidate adds on its own are left out. `ExecutionCounters`
holds what a candidate really moves, `tools/estimate/stage.py` guesses times.
"""

from typing import Literal

from kopt.config.gpu_specs import GpuSpec
from kopt.config.tensor_cores import tensor_tflop_s

from .dtypes import numpy_dtype
from .expressions import evaluate_expression
from .problem import Problem, TensorSpec, Workload, tensor_size_bytes
from .record import Record
from .status import Provenance


class TensorBytes(Record):
    """The bytes that one tensor must contribute to the traffic of one call."""

    name: str
    role: Literal["in", "out", "inout"]
    read_bytes: int
    """The whole buffer for `in` and `inout`, 0 for `out`."""
    written_bytes: int
    """The whole buffer for `out` and `inout`, padding of the layout included; 0 for `in`."""


class ByteModel(Record):
    """Bytes and operations of one call of one workload."""

    kernel: str
    """Kernel id."""
    tensors: tuple[TensorBytes, ...]
    """In call order."""
    read_bytes: int
    written_bytes: int
    total_bytes: int
    flop: int
    """Floating-point operations of the definition, from the problem's `flops` and `matrix_flops`: a
    fused multiply-add is two, an exponential, a division or a comparison is one."""
    matrix_flop: int = 0
    """The part of `flop` that tensor cores can do."""
    matrix_bits: int = 0
    """Bits of their narrowest factor, 4 for packed e2m1; 0 where there are none."""
    flop_per_byte: float
    """Arithmetic intensity."""
    provenance: Literal[Provenance.COMPUTED] = Provenance.COMPUTED


class Roofline(Record):
    """Where a workload stands under the roofline of one GPU. Floors, not predictions."""

    kernel: str
    gpu: str
    memory_floor_us: float
    compute_floor_us: float
    floor_us: float
    """The largest of both floors and `null_kernel_us`: no candidate takes less."""
    bound: Literal["memory", "compute"]
    """Which of the two floors is the larger one."""
    flop_per_byte: float
    ridge_flop_per_byte: float
    """The arithmetic intensity at which both floors are equal."""
    attainable_tflop_s: float
    """The most that the workload's intensity allows: 1e12 operations per second."""
    null_kernel_us: float
    """Time of an empty kernel on this GPU."""
    is_launch_dominated: bool
    """Whether both floors are shorter than an empty kernel. Judge such a workload by microseconds
    above the empty kernel: its percent of the roofline says nothing."""
    provenance: Literal[Provenance.COMPUTED] = Provenance.COMPUTED


def workload_bytes(problem: Problem, workload: Workload) -> ByteModel:
    """Return the bytes of one call: every input once, every output once, `inout` both ways.

    Weights count once per call. Scale factors count with the padding of their layout, which the
    consumer reads. A masked output counts whole.

    Args:
        problem: Its `flops` may use every axis of the workload.
        workload: One of the problem's, or any other set of concrete axis values for it.

    Raises:
        ExpressionError: `problem.flops` cannot be evaluated over the workload's axes.
    """
    tensors = tuple(_tensor_bytes(tensor, workload) for tensor in problem.tensors)
    read_bytes = sum(tensor.read_bytes for tensor in tensors)
    written_bytes = sum(tensor.written_bytes for tensor in tensors)
    total_bytes = read_bytes + written_bytes
    matrix_flop = evaluate_expression(problem.matrix_flops, workload.axes)
    flop = evaluate_expression(problem.flops, workload.axes) + matrix_flop
    return ByteModel(
        kernel=problem.kernel_id(workload),
        tensors=tensors,
        read_bytes=read_bytes,
        written_bytes=written_bytes,
        total_bytes=total_bytes,
        flop=flop,
        matrix_flop=matrix_flop,
        matrix_bits=_factor_bits(problem) if matrix_flop else 0,
        flop_per_byte=flop / total_bytes if total_bytes else 0.0,
    )


def memory_floor_us(model: ByteModel, gpu: GpuSpec) -> float:
    """Return the least time in which `gpu` can move the bytes of `model` once, in microseconds.

    A cold-cache latency far below this floor points at skipped or cached work.

    Source:
        Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009: the memory-bound arm, with the
        data-sheet peak.
    """
    return model.total_bytes / (gpu.dram_bandwidth_gb_s * 1e3)  # 1e9 bytes/s = 1e3 bytes/us


def compute_floor_us(model: ByteModel, gpu: GpuSpec) -> float:
    """Return the least time in which `gpu` can do the operations of `model`.

    Its fp32 lanes and its tensor cores work at the same time. The peak of the lanes counts fused
    multiply-adds, so the floor is optimistic for anything else; that of tensor cores is the one of
    the narrowest factors. Products of matrices count for nothing where it is not known.

    Source:
        Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009: the compute-bound arm.
    """
    lanes_us = (model.flop - model.matrix_flop) / (gpu.fp32_tflop_s * 1e6)  # 1e12/s = 1e6/us
    peak = tensor_tflop_s(gpu, model.matrix_bits) if model.matrix_flop else None
    return lanes_us if peak is None else max(lanes_us, model.matrix_flop / (peak * 1e6))


def roofline(model: ByteModel, gpu: GpuSpec) -> Roofline:
    """Return the floors of `model` on `gpu`, which of them binds, and the ridge point.

    Source:
        Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009.
    """
    memory_us = memory_floor_us(model, gpu)
    compute_us = compute_floor_us(model, gpu)
    floor_us = max(memory_us, compute_us, gpu.null_kernel_us)
    bandwidth_tb_s = gpu.dram_bandwidth_gb_s / 1e3
    # What all operations together may reach: 1e6 flop/us = 1e12 flop/s.
    peak_tflop_s = model.flop / compute_us / 1e6 if compute_us else gpu.fp32_tflop_s
    return Roofline(
        kernel=model.kernel,
        gpu=gpu.name,
        memory_floor_us=memory_us,
        compute_floor_us=compute_us,
        floor_us=floor_us,
        bound="memory" if memory_us >= compute_us else "compute",
        flop_per_byte=model.flop_per_byte,
        ridge_flop_per_byte=peak_tflop_s / bandwidth_tb_s,
        attainable_tflop_s=min(peak_tflop_s, model.flop_per_byte * bandwidth_tb_s),
        null_kernel_us=gpu.null_kernel_us,
        is_launch_dominated=max(memory_us, compute_us) < gpu.null_kernel_us,
    )


def _tensor_bytes(tensor: TensorSpec, workload: Workload) -> TensorBytes:
    size_bytes = tensor_size_bytes(tensor, workload.axes)
    return TensorBytes(
        name=tensor.name,
        role=tensor.role,
        read_bytes=0 if tensor.role == "out" else size_bytes,
        written_bytes=0 if tensor.role == "in" else size_bytes,
    )


def _factor_bits(problem: Problem) -> int:
    """Return the bits of the narrowest input: packed e2m1 comes as uint8."""
    read = [tensor.dtype for tensor in problem.tensors if tensor.role != "out"]
    return min(4 if dtype == "uint8" else 8 * numpy_dtype(dtype).itemsize for dtype in read)
