"""The outputs of timed calls beside the checked ones: what was timed is what was verified.

Every set of a replay holds the timed inputs with their rows rotated, so its outputs are those of
the checked execution, rotated. Most kernels give the same bits; those that do not are judged by
the gates of correctness. What a finding says is its class, no more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.bench_result import TimedOutputs
from kopt.kernels.record import Diagnostic
from kopt.kernels.row_rotation import rotate_outputs
from kopt.kernels.status import Status
from kopt.kernels.wide_work import count_differing
from kopt.tools.check.judge import judge
from kopt.tools.check.number_formats import storage_bits
from kopt.tools.check.output import initial_bits
from kopt.tools.devices.device import Arrays
from kopt.tools.devices.timer import SetOutputs

from .timed_case import TimedCase, Verified

_MOST_DIFFERENT = 8
_SAMPLED = 8
_SHIFTS_TRIED = 4  # equal rows, as of zeros, give several


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
            outputs = self._rotated_back(collected, place)
            if judge(self.verified.data, outputs, self.case.poison).finding is not None:
                self.finding = self._finding(outputs)
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
        places: dict[int, list[int]] = {}
        for place, rotation in enumerate(collected.rotations):
            places.setdefault(rotation % axes[problem.row_axis], []).append(place)
        checked = self.verified.outputs
        if not self._wanted:
            self._wanted = {name: np.empty_like(array) for name, array in checked.items()}
        found: dict[int, int] = {}
        for rotation, alike in places.items():  # one rotation of the checked outputs at a time
            rotate_outputs(problem, axes, checked, rotation, self._wanted)
            for place in alike:
                outputs = collected.outputs[place]
                found[place] = sum(
                    count_differing(_bytes(outputs[name]), _bytes(wanted))
                    for name, wanted in self._wanted.items()
                )
        return found

    def _rotated_back(self, collected: SetOutputs, place: int) -> Arrays:
        problem, axes = self.case.problem, self.case.workload.axes
        shift = -collected.rotations[place]
        return rotate_outputs(problem, axes, collected.outputs[place], shift)

    def _sample(self, differing: Mapping[int, int]) -> list[int]:
        """Return the sets to judge: those that differ most, and some of the others."""
        ordered = sorted(differing, key=lambda place: -differing[place])
        most, rest = ordered[:_MOST_DIFFERENT], ordered[_MOST_DIFFERENT:]
        sampled: list[int] = self.rng.permutation(len(rest))[:_SAMPLED].tolist()
        return most + [rest[place] for place in sampled]

    def _finding(self, outputs: Arrays) -> TimedFinding:
        replayed = self._is_unwritten(outputs) or self._is_another_call(outputs)
        return TimedFinding(
            Status.REWARD_HACK if replayed else Status.INCORRECT,
            Diagnostic(
                message="results of timed calls differ from the checked ones",
                hint="every call must compute its outputs from its own inputs",
            ),
        )

    def _is_unwritten(self, outputs: Arrays) -> bool:
        """Return whether the call left every output as it was."""
        judged = judge(self.verified.data, outputs, self.case.poison).outputs
        inputs = self.verified.data.inputs
        return all(
            np.array_equal(output.bits, initial_bits(output, self.case.poison, inputs.get(name)))
            for name, output in judged.items()
        )

    def _is_another_call(self, outputs: Arrays) -> bool:
        """Return whether the outputs are right ones of inputs rotated in another way."""
        problem, axes = self.case.problem, self.case.workload.axes
        for shift in self._possible_shifts(outputs)[:_SHIFTS_TRIED]:
            rotated = rotate_outputs(problem, axes, self.verified.outputs, shift)
            if all(
                np.array_equal(_bytes(array), _bytes(outputs[name]))
                for name, array in rotated.items()
            ):
                return True
        return False

    def _possible_shifts(self, outputs: Arrays) -> list[int]:
        """Return where the first row of one checked output stands in `outputs`."""
        row_axis = self.case.problem.row_axis
        for tensor in self.case.problem.tensors:
            if tensor.role == "in" or tensor.layout != "row_major" or row_axis not in tensor.shape:
                continue
            axis = tensor.shape.index(row_axis)
            wanted, got = (
                np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
                for array in (self.verified.outputs[tensor.name], outputs[tensor.name])
            )
            same = (_bits(got) == _bits(wanted)[0]).all(axis=1)
            return np.flatnonzero(same).tolist()
        return []


def _bits(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array.view(np.dtype(f"u{array.dtype.itemsize}"))


def _bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    return storage_bits(array).view(np.uint8)
