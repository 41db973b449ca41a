"""Small populations with known answers: members with times as a test states them."""

from typing import Any

from kopt.config.search_settings import SearchSettings, load_search_settings
from kopt.kernels.status import Provenance, Status
from kopt.search.records.evaluation import (
    LATENCY,
    REGISTERS,
    SPEEDUP,
    SPEEDUP_HIGH,
    SPEEDUP_LOW,
    Evaluation,
    MetricValue,
)
from kopt.search.records.members import Member

SOURCE = """/* kopt: 1
family: vectorization
tune: {BLOCK: [64, 128, 256], ROWS: [1, 2, 4]}   # the first is the default
launch:
  - {kernel: k, grid: B, block: BLOCK, args: [x]}
*/
extern "C" __global__ void k(float* x) {}
"""


def passed(latency_us: float, equivalence: str | None = None, registers: int = 32) -> Evaluation:
    """Return a passed evaluation with an estimated latency."""

    def value(metric: str, unit: str, number: float) -> MetricValue:
        return MetricValue(
            workload="w", metric=metric, unit=unit, provenance=Provenance.ESTIMATED, value=number
        )

    return Evaluation(
        status=Status.PASSED,
        summary="2 executions agree with the oracle",
        device="sim",
        equivalence=equivalence,
        values=(value(LATENCY, "us", latency_us), value(REGISTERS, "1", registers)),
    )


def timed(
    latency_us: float,
    speedup: float,
    workload: str = "b8",
    baseline: str = "flashinfer (PDL on)",
    half_width: float = 0.005,
) -> Evaluation:
    """Return a passed evaluation from a GPU with an interval of `speedup` +- `half_width`."""

    def value(metric: str, unit: str, number: float) -> MetricValue:
        return MetricValue(
            workload=workload,
            metric=metric,
            unit=unit,
            provenance=Provenance.MEASURED,
            value=number,
        )

    return Evaluation(
        status=Status.PASSED,
        summary="2 executions agree with the oracle",
        device="cuda:0",
        values=(
            value(LATENCY, "us", latency_us),
            value(SPEEDUP, baseline, speedup),
            value(SPEEDUP_LOW, baseline, speedup - half_width),
            value(SPEEDUP_HIGH, baseline, speedup + half_width),
            value(REGISTERS, "1", 32),
        ),
    )


def failed(status: Status = Status.INCORRECT) -> Evaluation:
    """Return an evaluation of a candidate that fell short."""
    return Evaluation(status=status, summary="row 3 is wrong", device="sim")


def member(seq: int, evaluation: Evaluation | None, **fields: Any) -> Member:
    """Return a member of a population with defaults for everything that a test leaves out."""
    known: dict[str, Any] = {
        "seq": seq,
        "round": 0,
        "source": SOURCE,
        "source_sha": "a" * 64,
        "source_name": "k.cu",
        "tune": {"BLOCK": 64, "ROWS": 1},
        "family": "vectorization",
        "proposer": "sweep",
        "parents": (),
        "quick": evaluation,
        "full": None,
    }
    return Member(**(known | fields))


def with_value(
    evaluation: Evaluation,
    metric: str,
    number: float = 1.0,
    provenance: Provenance = Provenance.COMPUTED,
) -> Evaluation:
    """Return `evaluation` with one more value."""
    value = MetricValue(workload="b8", metric=metric, unit="1", provenance=provenance, value=number)
    return evaluation.model_copy(update={"values": (*evaluation.values, value)})


def choices(width: int = 4, **changes: Any) -> SearchSettings:
    """Return the packaged settings with a beam of `width` and other changes."""
    return load_search_settings().with_beam(width, None).model_copy(update=changes)
