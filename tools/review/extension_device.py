"""A torch extension as something that executes: every call in a sandboxed process of its own.

Its host code is its author's. So the process reads the inputs of one call, the extension and the
toolkits, and writes to a folder of its own; it is given no expected output, no other input and
nothing of KOPT_HOME. What it hands back are bytes, held against the problem's shapes here and
judged where every candidate is.
"""

import json
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

import kopt
from kopt.config.gpu_specs import GpuSpec
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.problem import TensorSpec, storage_shape, tensor_size_bytes
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.tools.devices.device import Arrays, ExecutionOutcome, ExecutionRequest, Program
from kopt.tools.gpu.worker_policy import WorkerSpec, worker_policy
from kopt.tools.sandbox.ladder import run_sandboxed
from kopt.tools.sandbox.policy import SandboxedRun, SandboxPolicy

from . import extension_child
from .extension_call import ExtensionCall

BUILD_LIMIT_S = 600.0
START_LIMIT_S = 60.0
"""What importing torch and opening the GPU may take beside the call itself."""
_ANSWER_BYTES = 1 << 20
_SAID = 400  # characters of words that nobody parses
_MOST_ERRORS = 12
_ERROR = re.compile(r"extension\.c(?:u|pp)[:(](\d+)\)?[^\n]*?error:?([^\n]+)")
"""An error in the extension as nvcc and g++ write it."""
_FAULTS = (
    ("illegal memory access", Status.OUT_OF_BOUNDS),
    ("misaligned address", Status.MISALIGNED),
    ("unspecified launch failure", Status.CRASH),
    ("device-side assert", Status.CRASH),
)
"""How CUDA's words for a fault of a kernel are reported."""


@dataclass(frozen=True)
class ExtensionBuild:
    """A folder with the extension's library, or why there is none."""

    folder: Path
    failure: str | None = None
    """The compiler's words, or the sandbox's."""

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The compiler's errors with their lines, else the failure as one."""
        said = self.failure or ""
        found = tuple(
            Diagnostic(message=error[2].strip(), line=int(error[1]))
            for error in islice(_ERROR.finditer(said), _MOST_ERRORS)
        )
        return found or ((Diagnostic(message=said[:_SAID]),) if said else ())

    @property
    def library(self) -> Path:
        """The library that torch built."""
        return self.folder / f"{extension_child.NAME}.so"


@dataclass(frozen=True)
class ExtensionDevice:
    """Implements `Device`: calls the extension, whatever plan it is given."""

    build: ExtensionBuild
    call: ExtensionCall
    place: "ExtensionPlace"
    gpu: GpuSpec | None
    name: str
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock)

    def prepare(self, program: Program) -> ExecutionOutcome | None:
        """Have nothing to do: it is built once."""
        del program
        return None

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        """Call it once on the request's inputs."""
        with self._one_at_a_time, self.place.folder() as text:
            folder = Path(text)
            job = _job(request, self.call, self.place) | {"library": str(self.build.library)}
            for name, array in request.inputs.items():
                (folder / f"{name}.in").write_bytes(np.ascontiguousarray(array).tobytes())
            run = self.place.run(folder, job, START_LIMIT_S + request.timeout_s, self.build.folder)
            return _outcome(request, run, folder)


@dataclass(frozen=True)
class ExtensionPlace:
    """Where extensions are built and called."""

    settings: Settings
    arch: str
    """Compiler target, e.g. sm_90a."""
    gpu_uuid: str | None = None
    torch_device: str = "cuda"

    def folder(self) -> "tempfile.TemporaryDirectory[str]":
        """Return a folder for one process, removed afterwards."""
        return tempfile.TemporaryDirectory(prefix="kopt-extension-")

    def build(self, candidate: Candidate, is_module: bool, folder: Path) -> ExtensionBuild:
        """Compile the extension in `folder`; a failure is in the result.

        Raises:
            SetupError: No sandbox, or KOPT_HOME cannot be written.
            InfraError: The sandbox was killed from outside.
        """
        source = "extension.cu" if self.torch_device == "cuda" else "extension.cpp"
        (folder / source).write_text(candidate.source, "utf-8")
        job = {"step": "build", "source": source, "is_module": is_module}
        run = self.run(folder, job, BUILD_LIMIT_S)
        failure = _failure(run, folder)
        built = ExtensionBuild(folder, failure)
        if failure is None and not built.library.is_file():
            return replace(built, failure="torch built no library of it")
        return built

    def run(
        self, folder: Path, job: dict[str, Any], wall_s: float, *readable: Path
    ) -> SandboxedRun:
        """Run the script on `job` in `folder`, with nothing of kopt within its reach."""
        shutil.copyfile(extension_child.__file__, folder / "child.py")
        (folder / "job.json").write_text(json.dumps(job), "utf-8")
        policy = _policy(self, folder, readable)
        command = (sys.executable, "-s", folder / "child.py", folder)
        return run_sandboxed(command, replace(policy, wall_s=wall_s), self.settings)


def _policy(place: ExtensionPlace, folder: Path, readable: tuple[Path, ...]) -> SandboxPolicy:
    """Return a worker's policy without what is kopt's: its code, its caches, the problems."""
    base = worker_policy(WorkerSpec(engine=""), folder, place.settings)
    home = place.settings.home.absolute()
    own = {Path(root) for root in kopt.__path__}
    if place.settings.problems is not None:
        own.add(place.settings.problems.absolute())
    kept = [path for path in base.readable if path not in own and not path.is_relative_to(home)]
    names = ("FLASHINFER_WORKSPACE_BASE", "CUTE_DSL_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    environment = {name: text for name, text in base.environment.items() if name not in names}
    environment |= {"HOME": str(folder), "TORCH_CUDA_ARCH_LIST": _torch_arch(place.arch)}
    if place.gpu_uuid is not None:
        environment["CUDA_VISIBLE_DEVICES"] = place.gpu_uuid
    return replace(
        base,
        readable=(*kept, *readable),
        writable=(folder,),
        environment=environment,
        file_bytes=1 << 33,
    )


def _torch_arch(arch: str) -> str:
    """Return sm_90a as torch names it: 9.0a."""
    digits = arch.removeprefix("sm_").rstrip("af")
    return f"{digits[:-1]}.{digits[-1]}{arch.removeprefix('sm_')[len(digits) :]}"


def _job(request: ExecutionRequest, call: ExtensionCall, place: ExtensionPlace) -> dict[str, Any]:
    program = request.program
    values: dict[str, Any] = {one.name: one.value for one in program.problem.scalars}
    values |= program.plan.axes
    tensors = {tensor.name for tensor in program.problem.tensors}
    return {
        "step": "call",
        "function": call.function,
        "is_module": "." not in call.function,
        "arguments": [
            part if part in tensors else values[part] if part in values else _number(part)
            for part in call.arguments
        ],
        "results": list(call.results),
        "device": place.torch_device,
        "poison": request.poison,
        "tensors": [_told(tensor, program) for tensor in program.problem.tensors],
    }


def _told(tensor: TensorSpec, program: Program) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "dtype": tensor.dtype,
        "shape": storage_shape(tensor, program.plan.axes),
        "bytes": tensor_size_bytes(tensor, program.plan.axes),
        "is_given": tensor.role != "out",
    }


def _number(text: str) -> int | float:
    return float(text) if any(mark in text for mark in ".eE") else int(text)


def _outcome(request: ExecutionRequest, run: SandboxedRun, folder: Path) -> ExecutionOutcome:
    failure = _failure(run, folder)
    if run.timed_out:
        return _failed(Status.TIMEOUT, "the call did not end in time", run)
    if run.returncode < 0:
        return _failed(Status.CRASH, f"its process ended by signal {-run.returncode}", run)
    if failure is not None:
        failure = failure.strip().split("\n")[0][:_SAID]
        faults = (status for words, status in _FAULTS if words in failure)
        return _failed(next(faults, Status.LAUNCH_ERROR), failure, run)
    outputs: Arrays = {}
    for tensor, array in _read(request.program, folder):
        if array is None:
            return _failed(Status.LAUNCH_ERROR, f"it gives no {tensor.name} of the right size", run)
        if tensor.role != "in":
            outputs[tensor.name] = array
        elif array.tobytes() != request.inputs[tensor.name].tobytes():
            return _failed(Status.INPUT_MUTATED, f"{tensor.name} was changed", run)
    return ExecutionOutcome(Status.PASSED, outputs=outputs, sandbox=run.level)


def _failed(status: Status, message: str, run: SandboxedRun) -> ExecutionOutcome:
    return ExecutionOutcome(status, (Diagnostic(message=message),), sandbox=run.level)


def _failure(run: SandboxedRun, folder: Path) -> str | None:
    """Return why the script did not do its work, one line; None if it did."""
    lines = run.stderr_end.decode("utf-8", "replace").strip().splitlines()
    last = lines[-1][:_SAID] if lines else f"exit status {run.returncode}"
    if run.timed_out:
        return "it did not end in time"
    answer = _answer(folder)
    if run.returncode != 0 or "failure" not in answer:
        return last
    return None if answer["failure"] is None else str(answer["failure"])


def _answer(folder: Path) -> dict[str, Any]:
    """Return what the script says; empty where that is no JSON object."""
    text = _plain_file(folder / "answer.json", _ANSWER_BYTES)
    try:
        answer: object = None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        answer = None
    return cast(dict[str, Any], answer) if isinstance(answer, dict) else {}


def _read(program: Program, folder: Path) -> Iterator[tuple[TensorSpec, npt.NDArray[Any] | None]]:
    """Yield every tensor with what came back of it; None where that has another size."""
    for tensor in program.problem.tensors:
        size = tensor_size_bytes(tensor, program.plan.axes)
        raw = _plain_file(folder / f"{tensor.name}.out", size)
        if raw is None or len(raw) != size:
            yield tensor, None
            continue
        shape = storage_shape(tensor, program.plan.axes)
        yield tensor, np.frombuffer(raw, numpy_dtype(tensor.dtype)).reshape(shape)


def _plain_file(path: Path, most: int) -> bytes | None:
    """Return what an ordinary file holds; None for anything else and for more than `most` bytes."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(most + 1)
    except OSError:
        return None
    return data if len(data) <= most else None
