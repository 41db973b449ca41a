"""Runs every library path of one problem on the first GPU: a program, as pytest has no context.

    library_probe.py PROBLEM WORKLOAD FOLDER

Reads FOLDER/inputs.npz (unsigned integers of equal width), writes FOLDER/outputs.npz with arrays
`<baseline>/<pdl>/<run>/<tensor>` and prints one JSON document. Runs are the poison bytes in decimal
and `captured`, which is a replay of a captured call over the last poison.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.dtypes import dtype_size_bytes
from kopt.kernels.problem import Problem, Workload, storage_shape, tensor_size_bytes
from kopt.kernels.problem_loader import load_problems
from kopt.tools.devices.timer import LibrarySide
from kopt.tools.gpu.worker import driver
from kopt.tools.gpu.worker.driver import Address, Stream
from kopt.tools.gpu.worker.failure import ExecutionFailure
from kopt.tools.gpu.worker.library_side import BoundLibrary, bind_library
from kopt.tools.gpu.worker.replay_graphs import capture, graph_nodes

POISONS = (0xAA, 0x55)
CAPTURED = "captured"
Bits = dict[str, npt.NDArray[Any]]


class Buffers:
    """One buffer for each tensor of a problem."""

    def __init__(self, problem: Problem, workload: Workload, stream: Stream) -> None:
        """Allocate."""
        self.problem, self.workload, self.stream = problem, workload, stream
        self.addresses: dict[str, Address] = {
            tensor.name: driver.allocate(tensor_size_bytes(tensor, workload.axes))
            for tensor in problem.tensors
        }

    def fill(self, inputs: Bits, poison: int) -> None:
        """Bring the inputs; everything else gets the poison."""
        for tensor in self.problem.tensors:
            address = self.addresses[tensor.name]
            if tensor.name in inputs:
                driver.copy_to_device(address, inputs[tensor.name], self.stream)
            else:
                size_bytes = tensor_size_bytes(tensor, self.workload.axes)
                driver.fill(address, poison, size_bytes, self.stream)
        driver.synchronize_stream(self.stream)

    def outputs(self) -> Bits:
        """Return what `out` and `inout` tensors hold once the stream is done."""
        driver.synchronize_stream(self.stream)
        found: Bits = {}
        for tensor in self.problem.tensors:
            if tensor.role != "in":
                shape = storage_shape(tensor, self.workload.axes)
                bits = np.empty(shape, dtype=f"u{dtype_size_bytes(tensor.dtype)}")
                driver.copy_to_host(bits, self.addresses[tensor.name], self.stream)
                found[tensor.name] = bits
        driver.synchronize_stream(self.stream)
        return found


def replay_captured(bound: BoundLibrary, stream: Stream) -> list[str]:
    """Capture one call, replay it once, and return the kinds of its nodes."""
    graph = capture([bound.launch], stream)
    driver.call("cuGraphLaunch", driver.call("cuGraphInstantiate", graph, 0), stream)
    return [node.kind for node in graph_nodes(graph)]


def probe(side: LibrarySide, buffers: Buffers, inputs: Bits) -> tuple[dict[str, Any], Bits]:
    """Run one path on every poison and once captured; return its facts and all outputs."""
    found: Bits = {}

    def keep(run: str) -> None:
        found.update({f"{run}/{name}": bits for name, bits in buffers.outputs().items()})

    try:
        buffers.fill(inputs, POISONS[0])  # a library may plan by what it reads when it is bound
        bound = bind_library(
            side, buffers.problem, buffers.workload, buffers.addresses, buffers.stream
        )
        for poison in POISONS:
            buffers.fill(inputs, poison)
            bound.launch()
            keep(str(poison))
        allocations = bound.count_allocations()
        buffers.fill(inputs, POISONS[-1])
        nodes = replay_captured(bound, buffers.stream)
        keep(CAPTURED)
    except ExecutionFailure as failure:
        return {"fault": failure.fault.model_dump()}, {}
    return {"library": bound.library, "allocations": allocations, "nodes": nodes}, found


def main(problem_name: str, workload_name: str, folder: Path) -> None:
    """Probe every path of the problem."""
    problem = load_problems()[problem_name]
    with np.load(folder / "inputs.npz") as file:
        inputs = {name: np.ascontiguousarray(file[name]) for name in file.files}
    driver.call("cuInit", 0)
    driver.call("cuCtxSetCurrent", int(driver.call("cuDevicePrimaryCtxRetain", 0)))
    flags = driver.enum("CUstream_flags", "CU_STREAM_NON_BLOCKING").value
    stream = Stream(int(driver.call("cuStreamCreate", flags)))
    capability = [
        driver.device_attribute(0, f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR")
    ]
    buffers = Buffers(problem, problem.workload(workload_name), stream)
    outputs: Bits = {}
    paths: dict[str, dict[str, Any]] = {}
    for baseline in problem.baselines:
        for pdl in baseline.pdl:
            path = f"{baseline.name}/{pdl}"
            facts, found = probe(LibrarySide(baseline=baseline, pdl=pdl), buffers, inputs)
            paths[path] = facts
            outputs.update({f"{path}/{name}": bits for name, bits in found.items()})
    np.savez(folder / "outputs.npz", allow_pickle=False, **outputs)
    print(json.dumps({"compute_capability": capability, "paths": paths}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
