"""Candidates compiled by g++ and run thread after thread: values only, nothing is checked.

What a candidate does wrong beside its values only the simulator sees. Many candidates make one
library, and g++ reads CUDA's headers once in a process: it precompiles them, in 1.5 s.
"""

import ctypes
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.config.gpu_specs import gpu_for_arch
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.plan_resolver import resolve_plan
from kopt.kernels.problem import Problem, Workload, storage_shape
from kopt.tools.cuda.include_tree import cuda_include_folders

Array = npt.NDArray[Any]
_HERE = Path(__file__).parent
_KERNEL = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\(([^)]*)\)')
_POISON = 0xA5
_HEADER = "plain_cuda.h"
_FLAGS = ("-std=c++20", "-O0", "-w", "-fPIC", "-ffp-contract=off", "-fno-gnu-unique")


@dataclass(frozen=True)
class PlainCase:
    """A candidate at one workload."""

    problem: Problem
    workload: Workload
    source: str
    tune: Mapping[str, int]

    @property
    def plan(self) -> LaunchPlan:
        """The launches."""
        case = Case(self.problem, self.workload, Candidate(self.source), self.tune)
        outcome = resolve_plan(case, gpu_for_arch("sm_90a"))
        assert outcome.plan is not None, [one.message for one in outcome.diagnostics]
        return outcome.plan


class PlainLibrary:
    """Cases compiled together."""

    def __init__(self, cases: Sequence[PlainCase], folder: Path) -> None:
        """Compile all `cases` into a library in `folder`."""
        self.cases = cases
        self.plans = [case.plan for case in cases]
        parts = [f'#include "{_HEADER}"']
        for number, (case, plan) in enumerate(zip(cases, self.plans, strict=True)):
            parts.append(_unit(number, case.source, plan))
        (folder / "unit.cpp").write_text("\n".join(parts), "utf-8")
        command = [*_compiler(), f"-I{_precompiled().name}", "-shared", "unit.cpp", "-o", "unit.so"]
        _run(command, folder)
        self._library = ctypes.CDLL(str(folder / "unit.so"))

    def run(self, number: int, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run a case and return its outputs."""
        case, plan = self.cases[number], self.plans[number]
        buffers = dict(inputs)
        outputs: dict[str, Array] = {}
        for tensor in case.problem.tensors:
            if tensor.role != "in":
                shape = storage_shape(tensor, case.workload.axes)
                given = inputs.get(tensor.name)  # what is written in place
                empty = _poisoned(shape, tensor.dtype)
                outputs[tensor.name] = empty if given is None else given.copy()
        buffers |= outputs
        for scratch in plan.scratch:
            buffers[scratch.name] = _poisoned(scratch.shape, scratch.dtype)
        for launch_number, launch in enumerate(plan.launches):
            pointers = [
                buffers[one.name].ctypes.data if one.value is None else int(one.value)
                for one in launch.arguments
            ]
            values = (ctypes.c_void_p * len(pointers))(*pointers)
            call = getattr(self._library, f"run_{number}_{launch_number}")
            call(values, ctypes.c_uint(launch.grid[0]), ctypes.c_uint(launch.block[0]))
        return outputs


def _compiler() -> list[str]:
    """Return g++ with the flags that the header and what includes it are compiled with."""
    folders = (files("kopt.kernels").joinpath("common"), *cuda_include_folders())
    return ["g++", *_FLAGS, *(f"-I{folder}" for folder in folders)]


@lru_cache(maxsize=1)
def _precompiled() -> TemporaryDirectory[str]:
    """Return a folder of this process with the header, and what g++ has read in it beside it."""
    folder = TemporaryDirectory(prefix="plain-cuda-", ignore_cleanup_errors=True)
    (Path(folder.name) / _HEADER).write_bytes((_HERE / _HEADER).read_bytes())
    _run([*_compiler(), "-x", "c++-header", _HEADER], Path(folder.name))
    return folder


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]


def _poisoned(shape: Sequence[int], dtype: str) -> Array:
    kind = numpy_dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    return np.full(count * kind.itemsize, _POISON, np.uint8).view(kind).reshape(tuple(shape))


def _unit(number: int, source: str, plan: LaunchPlan) -> str:
    text = re.sub(r"^#include .*$", "", source, flags=re.MULTILINE)
    kernels = {match[1]: match[2] for match in _KERNEL.finditer(text)}
    bodies = _KERNEL.split(text)
    has_barrier = {
        name: any(word in body for word in ("__syncthreads", "op::merged_in_"))
        for name, body in zip(bodies[1::3], bodies[3::3], strict=True)
    }
    lines = [f"#define {name} {value}" for name, value in plan.defines.items()]
    lines.append(f"namespace case_{number} {{")
    lines.append(text.replace('extern "C" __global__', "static"))
    for launch_number, launch in enumerate(plan.launches):
        types = [one.rsplit(None, 1)[0] for one in kernels[launch.kernel].split(",")]
        given = ", ".join(
            f"static_cast<{kind.replace('__restrict__', '')}>(values[{place}])"
            if "*" in kind
            else f"static_cast<{kind}>(reinterpret_cast<long long>(values[{place}]))"
            for place, kind in enumerate(types)
        )
        lines.append(
            f'extern "C" void run_{number}_{launch_number}(void** values, unsigned grid,'
            f" unsigned block) {{ plain_cuda::launch([](void** values) {{"
            f" {launch.kernel}({given}); }}, values, grid, block,"
            f" {str(has_barrier[launch.kernel]).lower()}); }}"
        )
    lines.append("}")
    lines += [f"#undef {name}" for name in plan.defines]
    return "\n".join(lines)
