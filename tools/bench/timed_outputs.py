"""The outputs of timed calls beside the checked ones: what was timed is what was verified.

Every set of a replay holds the timed inputs with their rows rotated, so its outputs are those of
the checked execution, rotated; without rows it holds one of several draws, each checked by itself.
Most kernels give the same bits; those that do not are judged by the gates of correctness. What a
finding says is its class, no more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.bench_result import TimedOutputs
from kopt.kernels.record import Diagnostic
from kopt.kernels.set_contents import as_drawn, distinct_contents, outputs_of_set
from kopt.kernels.status import Status
from kopt.kernels.wide_work import count_differing
from kopt.tools.check.judge import judge
from kopt.tools.check.number_formats import storage_bits
from kopt.tools.check.output import initial_bits
from kopt.tools.devices.device import Arrays
from kopt.tools.devices.timer import SetOutputs

from .timed_case import TimedCase, Verified, VerifiedDraw
from .whole_rows import far_rows

_MOST_DIFFERENT = 8
_SAMPLED = 8
_CONTENTS_TRIED = 4  # equal rows, as of zeros, give several


@dataclass(frozen=True)
class TimedFinding:
    """Why timed calls are not what was checked."""

    status: Status
    diagnostic: Diagnostic


@dataclass
class OutputInspector:
    """Compares what replays left, and remembers counts and the first finding."""

    case: TimedCase
    verified: Verified
    rng: np.random.Generator
    counts: TimedOutputs = field(
        default_factory=lambda: TimedOutputs(calls=0, identical=0, within_gates=0)
    )
    finding: TimedFinding | None = None
    _wanted: Arrays = field(default_factory=dict[str, npt.NDArray[Any]])
    """Room for the checked outputs in one rotation, used again and again."""

    def inspect(self, collected: SetOutputs) -> bool:
        """Return whether the outputs of all sets are right."""
        differing_bytes = self._differing_bytes(collected)
        differing = {place: count for place, count in differing_bytes.items() if count}
        judged = self._sample(differing)
        for place in judged:
            draw, outputs = self._as_drawn(collected, place)
            finding = judge(draw.data, outputs, self.case.poison).finding
            if finding is not None or far_rows(draw.data, outputs, draw.outputs):
                self.finding = self._finding(draw, outputs)
                return False
        self.counts = TimedOutputs(
            calls=self.counts.calls + len(differing_bytes),
            identical=self.counts.identical + len(differing_bytes) - len(differing),
            within_gates=self.counts.within_gates + len(judged),
        )
        return True

    def _differing_bytes(self, collected: SetOutputs) -> dict[int, int]:
        """Return how many bytes of each set, by its place, are not the checked ones."""
        problem, axes = self.case.problem, self.case.workload.axes
        checked = [draw.outputs for draw in self.verified.draws]
        contents = distinct_contents(problem, axes, len(checked))
        places: dict[int, list[int]] = {}
        for place, rotation in enumerate(collected.rotations):
            places.setdefault(rotation % contents, []).append(place)
        if not self._wanted:
            self._wanted = {name: np.empty_like(array) for name, array in checked[0].items()}
        found: dict[int, int] = {}
        for rotation, alike in places.items():  # one rotation of the checked outputs at a time
            outputs_of_set(problem, axes, checked, rotation, self._wanted)
            for place in alike:
                outputs = collected.outputs[place]
                found[place] = sum(
                    count_differing(_bytes(outputs[name]), _bytes(wanted))
                    for name, wanted in self._wanted.items()
                )
        return found

    def _as_drawn(self, collected: SetOutputs, place: int) -> tuple[VerifiedDraw, Arrays]:
        """Return the outputs of a set in the order of rows of its draw, and that draw."""
        problem, axes = self.case.problem, self.case.workload.axes
        outputs, contents = collected.outputs[place], collected.rotations[place]
        draw, turned = as_drawn(problem, axes, outputs, contents)
        return self.verified.draws[draw], turned

    def _sample(self, differing: Mapping[int, int]) -> list[int]:
        """Return the sets to judge: those that differ most, and some of the others."""
        ordered = sorted(differing, key=lambda place: -differing[place])
        most, rest = ordered[:_MOST_DIFFERENT], ordered[_MOST_DIFFERENT:]
        sampled: list[int] = self.rng.permutation(len(rest))[:_SAMPLED].tolist()
        return most + [rest[place] for place in sampled]

    def _finding(self, draw: VerifiedDraw, outputs: Arrays) -> TimedFinding:
        replayed = self._is_unwritten(draw, outputs) or self._is_another_call(outputs)
        return TimedFinding(
            Status.REWARD_HACK if replayed else Status.INCORRECT,
            Diagnostic(
                message="results of timed calls differ from the checked ones",
                hint="every call must compute its outputs from its own inputs",
            ),
        )

    def _is_unwritten(self, draw: VerifiedDraw, outputs: Arrays) -> bool:
        """Return whether the call left every output as it was."""
        judged = judge(draw.data, outputs, self.case.poison).outputs
        inputs = draw.data.inputs
        return all(
            np.array_equal(output.bits, initial_bits(output, self.case.poison, inputs.get(name)))
            for name, output in judged.items()
        )

    def _is_another_call(self, outputs: Arrays) -> bool:
        """Return whether the outputs are right ones of another draw, or of another rotation."""
        problem, axes = self.case.problem, self.case.workload.axes
        checked = [draw.outputs for draw in self.verified.draws]
        for contents in self._possible_contents(outputs)[:_CONTENTS_TRIED]:
            others = outputs_of_set(problem, axes, checked, contents)
            if all(
                np.array_equal(_bytes(array), _bytes(outputs[name]))
                for name, array in others.items()
            ):
                return True
        return False

    def _possible_contents(self, outputs: Arrays) -> list[int]:
        """Return where the first row of one checked output stands in `outputs`."""
        row_axis = self.case.problem.row_axis
        if row_axis is None:
            return list(range(len(self.verified.draws)))
        for tensor in self.case.problem.tensors:
            if tensor.role == "in" or tensor.layout != "row_major" or row_axis not in tensor.shape:
                continue
            axis = tensor.shape.index(row_axis)
            wanted, got = (
                np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
                for array in (self.verified.draws[0].outputs[tensor.name], outputs[tensor.name])
            )
            same = (_bits(got) == _bits(wanted)[0]).all(axis=1)
            return np.flatnonzero(same).tolist()
        return []


def _bits(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array.view(np.dtype(f"u{array.dtype.itemsize}"))


def _bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    return storage_bits(array).view(np.uint8)
