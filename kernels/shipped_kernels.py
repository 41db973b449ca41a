"""Kernels that lie beside a problem: promoted winners, and unproven ones that no GPU has run.

`<problem>/winners/<workload>.<arch>.cu` has a receipt of its measurements beside it,
`<problem>/unproven/<workload>.<arch>.cu` only facts that need no such GPU (`unproven_facts.py`).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from kopt.config.settings import Settings

from .problem import Problem, Workload

Standing = Literal["winner", "unproven"]
FOLDERS: dict[Standing, str] = {"winner": "winners", "unproven": "unproven"}
HIDING_SOURCE = "winners"
"""Of KOPT_WITHOUT_SOURCES: hides both, which are earlier results alike."""


@dataclass(frozen=True)
class ShippedKernel:
    """One source for one workload and architecture."""

    standing: Standing
    arch: str
    source: Path

    @property
    def label(self) -> str:
        """`winner for sm_90a` or `unproven for sm_100a`."""
        return f"{self.standing} for {self.arch}"


def shipped_kernels(problem: Problem, workload: Workload) -> tuple[ShippedKernel, ...]:
    """Return the kernels beside `problem` for one workload, winners first, then by architecture."""
    return tuple(
        ShippedKernel(standing, path.name.split(".")[1], path)
        for standing in get_args(Standing)
        for path in sorted(problem.folder.joinpath(FOLDERS[standing]).glob("*.*.cu"))
        if path.name.split(".")[0] == workload.name
    )


def visible_kernels(
    problem: Problem, workload: Workload, settings: Settings
) -> tuple[ShippedKernel, ...]:
    """Return `shipped_kernels`, or none in a process that must not see earlier results."""
    if HIDING_SOURCE in settings.without_sources:
        return ()
    return shipped_kernels(problem, workload)
