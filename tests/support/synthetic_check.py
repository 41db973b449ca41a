"""A small problem of every output class, its right outputs, and a device that runs numpy.

y = x * gain in fp64; outputs: `codes` and `block_scale` (nvfp4, per 16), `y_bf16`, `y_fp8`
(e4m3 without scales), `total` (float32 row sums) and `kept` (inout bf16: kept + x, bit-exact).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

import numpy as np

from kopt.config.gpu_specs import GpuSpec
from kopt.kernels.candidate import Candidate
from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.oracle import load_oracle
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.problem import Problem, TensorSpec, Workload, storage_shape
from kopt.kernels.status import Status
from kopt.tools.check.case_data import CaseData, CaseKey, make_case_data
from kopt.tools.check.judge import Judgement, judge
from kopt.tools.check.reference import make_reference
from kopt.tools.devices.device import Arrays, ExecutionOutcome, ExecutionRequest, Program

ORACLE = dedent(
    '''
    """Oracle of the synthetic problem."""

    import numpy as np

    from kopt.kernels.input_regimes import Magnitudes, draw_amplitudes, draw_values
    from kopt.kernels.nvfp4 import expected_outputs, quantize_blocks
    from kopt.kernels.oracle import Expected
    from kopt.kernels.rounding import decode, round_to_bf16, round_to_e4m3


    def make_inputs(workload, rng, regime):
        shape = (workload.axes["B"], workload.axes["H"])
        amplitudes = draw_amplitudes(rng, shape, regime, Magnitudes(tiny=2.0**-20, huge=2.0**20))
        return {
            "x": round_to_bf16(draw_values(rng, shape, amplitudes)),
            "kept": round_to_bf16(draw_values(rng, shape, amplitudes)),
        }


    def expected(inputs, scalars):
        x, kept = decode(inputs["x"]), decode(inputs["kept"])
        y = x * 1.3
        every = np.ones(x.shape, dtype=bool)
        amax = float(np.abs(y).max())
        quantized = quantize_blocks(y, np.float64(448 * 6 / amax if amax else 1.0))
        nvfp4 = expected_outputs(quantized, "LAYOUT", every[:, 0])
        total = y.sum(axis=1)
        return {
            "codes": nvfp4["out"],
            "block_scale": nvfp4["block_scale"],
            "y_bf16": Expected(y, round_to_bf16(y), every),
            "y_fp8": Expected(y, round_to_e4m3(y), every),
            "total": Expected(
                total,
                total.astype(np.float32),
                np.arange(len(total)) < len(total) - 1,
                slack=np.abs(y).sum(axis=1) * 2.0**-20,
            ),
            "kept": Expected(kept + x, round_to_bf16(kept + x), every, bit_exact=True),
        }
    '''
)


def synthetic_problem(
    folder: Path,
    shapes: tuple[tuple[int, int], ...] = ((8, 64),),
    layout: str = "row_major",
) -> Problem:
    """Return the problem with its oracle in `folder`; the last row's `total` is not written."""
    folder.mkdir(parents=True, exist_ok=True)
    oracle = ORACLE.replace('"LAYOUT"', f'"{layout}"')
    (folder / "oracle.py").write_text(oracle, encoding="utf-8")
    return Problem(
        name="synthetic",
        op_type="test",
        description="y = 1.3 x",
        axes={"B": None, "H": None, "HP": "H // 2", "HB": "H // 16"},
        tensors=(
            TensorSpec(name="x", role="in", dtype="bfloat16", shape=("B", "H")),
            TensorSpec(name="kept", role="inout", dtype="bfloat16", shape=("B", "H")),
            TensorSpec(name="codes", role="out", dtype="uint8", shape=("B", "HP")),
            TensorSpec.model_validate(
                {
                    "name": "block_scale",
                    "role": "out",
                    "dtype": "float8_e4m3fn",
                    "shape": ("B", "HB"),
                    "layout": layout,
                }
            ),
            TensorSpec(name="y_bf16", role="out", dtype="bfloat16", shape=("B", "H")),
            TensorSpec(name="y_fp8", role="out", dtype="float8_e4m3fn", shape=("B", "H")),
            TensorSpec(name="total", role="out", dtype="float32", shape=("B",)),
        ),
        row_axis="B",
        workloads=tuple(_workload(*shape) for shape in shapes),
        tolerance="nvfp4",
        folder=folder,
    )


def _workload(rows: int, columns: int) -> Workload:
    axes = {"B": rows, "H": columns, "HP": columns // 2, "HB": columns // 16}
    return Workload(name=f"b{rows}xh{columns}", axes=axes)


@dataclass(frozen=True)
class Checked:
    """One case with its right outputs, to be spoiled by a test."""

    data: CaseData
    outputs: Arrays
    """Correctly rounded; what must not be written holds the poison 0xFF."""

    def judge(self) -> Judgement:
        """Return what the gates say of `outputs`."""
        return judge(self.data, self.outputs, 0xFF)


def checked(problem: Problem, regime: str = "normal", seed: int = 1) -> Checked:
    """Return the first workload's case."""
    data = make_case_data(CaseKey(problem, problem.workloads[0], seed, regime))
    return Checked(data, right_outputs(problem, data, 0xFF))


def right_outputs(problem: Problem, data: CaseData, poison: int) -> Arrays:
    """Return fresh correctly rounded outputs over a buffer of `poison` or of old values."""
    outputs: Arrays = {}
    for name, reference in data.references.items():
        spec = problem.tensor(name)
        bits = np.full(reference.bits.shape, int.from_bytes(bytes([poison]) * 8, "little"), "u8")
        bits = bits.astype(reference.bits.dtype)
        written = slice(None) if reference.written is None else reference.written
        bits[written] = reference.bits[written]
        axes = _axes_of(problem, data)
        outputs[name] = bits.view(numpy_dtype(spec.dtype)).reshape(storage_shape(spec, axes))
    return outputs


def _axes_of(problem: Problem, data: CaseData) -> dict[str, int]:
    rows, columns = data.inputs["x"].shape
    return next(
        workload.axes
        for workload in problem.workloads
        if workload.axes["B"] == rows and workload.axes["H"] == columns
    )


Spoil = Callable[[ExecutionRequest, Arrays], None]


def leave_right(request: ExecutionRequest, outputs: Arrays) -> None:
    """Spoil nothing."""
    del request, outputs


@dataclass
class NumpyDevice:
    """Gives right outputs, spoiled by a function; remembers what it was asked."""

    spoil: Spoil = leave_right
    status: Status = Status.PASSED
    requests: list[ExecutionRequest] = field(default_factory=list[ExecutionRequest])
    name: str = "numpy"
    gpu: GpuSpec | None = None

    def prepare(self, program: Program) -> ExecutionOutcome | None:
        """Have nothing to build."""
        del program
        return None

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        """Return the oracle's result over the request's poison."""
        self.requests.append(request)
        if self.status is not Status.PASSED:
            return ExecutionOutcome(self.status)
        problem = request.program.problem
        data = case_of(problem, request.inputs)
        outputs = right_outputs(problem, data, request.poison)
        self.spoil(request, outputs)
        return ExecutionOutcome(Status.PASSED, outputs=outputs, sandbox="plain")


def case_of(problem: Problem, inputs: Arrays) -> CaseData:
    """Return inputs and references, by running the oracle on the inputs."""
    expected = load_oracle(problem).expected(inputs, {})
    references = {name: make_reference(problem, name, entry) for name, entry in expected.items()}
    return CaseData(inputs, references)


def plans_for(problem: Problem) -> dict[str, LaunchPlan]:
    """Return an empty plan for every workload; `NumpyDevice` reads its name alone."""
    return {
        workload.name: LaunchPlan(
            workload=workload.name, axes=workload.axes, defines={}, launches=()
        )
        for workload in problem.workloads
    }


CANDIDATE = Candidate("// not compiled by these tests")
