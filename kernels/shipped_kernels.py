"""Kernels that lie beside a problem: promoted winners, and unproven ones that no GPU has run.

`winners/` and `unproven/` of a problem hold each source once, and for each workload that it serves
a JSON file of evidence, `<workload>.<arch>.receipt.json` or `.facts.json`, whose `source_file`
names the source. Evidence that names none is of the source called as itself.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from kopt.config.settings import Settings

from .problem import Problem, Workload

Standing = Literal["winner", "unproven"]
FOLDERS: dict[Standing, str] = {"winner": "winners", "unproven": "unproven"}
EVIDENCE: dict[Standing, str] = {"winner": ".receipt.json", "unproven": ".facts.json"}
HIDING_SOURCE = "winners"
"""The name in KOPT_WITHOUT_SOURCES that hides winners and unproven kernels."""


_SOURCE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.cu")


@dataclass(frozen=True)
class ShippedKernel:
    """One source for one workload and architecture."""

    standing: Standing
    arch: str
    source: Path
    evidence: Path
    """The receipt or the facts of this workload; the file may be missing."""

    @property
    def label(self) -> str:
        """`winner for sm_90a` or `unproven for sm_100a`."""
        return f"{self.standing} for {self.arch}"


def shipped_kernels(problem: Problem, workload: Workload) -> tuple[ShippedKernel, ...]:
    """Return the kernels beside `problem` for one workload, winners first, then by architecture."""
    return tuple(
        kernel
        for standing in get_args(Standing)
        for kernel in kernels_in(problem.folder / FOLDERS[standing], workload, standing)
    )


def kernels_in(
    folder: Path, workload: Workload, standing: Standing = "winner"
) -> Iterator[ShippedKernel]:
    """Yield the kernels in `folder` that serve `workload`, by architecture."""
    suffix = EVIDENCE[standing]
    stems = {
        path.name.removesuffix(end)
        for end in (suffix, ".cu")
        for path in folder.glob(f"{workload.name}.sm_*{end}")
    }
    for stem in sorted(stems):
        evidence = folder / f"{stem}{suffix}"
        yield ShippedKernel(standing, stem.split(".")[-1], source_of(evidence), evidence)


def source_of(evidence: Path) -> Path:
    """Return where the source of a receipt or of facts lies, whether or not it is there."""
    named = _read(evidence).get("source_file")
    if isinstance(named, str) and _SOURCE_NAME.fullmatch(named):
        return evidence.with_name(named)
    stem = evidence.name.removesuffix(".json").rpartition(".")[0]
    return evidence.with_name(f"{stem}.cu")


def evidence_of(source: Path, candidate: str | None = None) -> tuple[Path, ...]:
    """Return the receipts and facts beside `source` that name it, in the order of their names.

    Args:
        source: A candidate's file.
        candidate: Only those of this candidate id: a source may have changed since.
    """
    beside = [path for suffix in EVIDENCE.values() for path in source.parent.glob(f"*{suffix}")]
    return tuple(
        path
        for path in sorted(beside)
        if source_of(path).name == source.name and candidate in (None, _read(path).get("candidate"))
    )


def _read(evidence: Path) -> dict[str, object]:
    """Return the JSON in `evidence`, unchecked; empty where there is none."""
    try:
        document: object = json.loads(evidence.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return cast(dict[str, object], document) if isinstance(document, dict) else {}


def visible_kernels(
    problem: Problem, workload: Workload, settings: Settings
) -> tuple[ShippedKernel, ...]:
    """Return `shipped_kernels`, or none in a process that must not see earlier results."""
    if HIDING_SOURCE in settings.without_sources:
        return ()
    return shipped_kernels(problem, workload)
