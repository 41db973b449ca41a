"""`kopt stitch`: one candidate for a network, of a candidate for each of its parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kopt.config.errors import ToolError
from kopt.config.near_matches import near_matches
from kopt.kernels.candidate import Candidate, candidate_of_text, read_candidate
from kopt.kernels.header_parser import parse_header
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.record import Record
from kopt.tools.pytorch.graph import FILE_NAME
from kopt.tools.pytorch.oracle import digest_of
from kopt.tools.pytorch.splitting.split_file import WHOLE_FOLDER, Split, read_split

from .part_names import PartNames
from .plan import Step, StitchPlan, flag_notes, stitched_text

REFERENCE_FILE = "reference.cu"


@dataclass(frozen=True)
class Chosen:
    """A kernel for a part, and where it is from."""

    file: Path
    origin: str


class StitchedPart(Record):
    """A part in the whole."""

    name: str
    count: int
    weight: float
    file: str
    origin: str
    """`reference`, a run, or `named`."""


class Stitched(Record):
    """What `kopt stitch` wrote."""

    format: Literal["kopt.stitched/1"] = "kopt.stitched/1"
    file: str
    whole: str
    kernels: tuple[str, ...]
    """Ids of the whole's kernels, the one that is checked everywhere first."""
    launches: int
    parts: tuple[StitchedPart, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SplitFolder:
    """What `kopt split` wrote, read again."""

    folder: Path
    split: Split
    whole: Problem
    parts: Mapping[str, Problem]

    def named(self, text: str) -> str:
        """Return the part that `text` names, with or without the name of the whole.

        Raises:
            ToolError: There is none.
        """
        for name in (text, f"{self.whole.name}_{text}"):
            if name in self.parts:
                return name
        regions = [one.name for one in self.split.parts if text in one.regions]
        if regions:
            return regions[0]
        raise ToolError(
            f"{text!r} is no part of {self.whole.name}; {near_matches(text, self.parts)}"
        )


def read_split_folder(folder: Path) -> SplitFolder:
    """Return the split in `folder` with its problems.

    Raises:
        ToolError: It is none, or something in it was changed or is missing.
    """
    if not folder.is_dir():
        raise ToolError(f"there is no folder {folder}: kopt split PROBLEM_DIR -o {folder} makes it")
    split = read_split(folder)
    whole = load_problem((folder / WHOLE_FOLDER / split.whole).resolve())
    if digest_of(whole.folder / FILE_NAME) != split.digest:
        raise ToolError(
            f"{whole.folder / FILE_NAME} was changed after the split: split it again by kopt split"
        )
    parts = {one.name: load_problem((folder / one.name).resolve()) for one in split.parts}
    return SplitFolder(folder, split, whole, parts)


def stitch(given: SplitFolder, chosen: Mapping[str, Chosen], file: Path) -> Stitched:
    """Write the candidate of the whole and return what is in it.

    Args:
        given: The split.
        chosen: A kernel of parts by name; the others have their reference.cu.
        file: Is written, or replaced.

    Raises:
        ToolError: A part has no kernel, or one that cannot be stitched; the message names both.
    """
    kernels = {
        name: chosen.get(name) or _reference(problem) for name, problem in given.parts.items()
    }
    order = list(dict.fromkeys(step.part for step in given.split.steps))
    parts = {
        name: _part(given, name, place, kernels[name].file) for place, name in enumerate(order, 1)
    }
    steps = [Step(one.part, one.wires) for one in given.split.steps]
    plan = StitchPlan(parts, steps, given.split.values)
    text = stitched_text(plan)
    candidate = candidate_of_text(text, file.name)
    launches = _launches(candidate, given.whole)
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise ToolError(f"cannot write {file}: {error.strerror}; choose another -o FILE") from error
    return Stitched(
        file=str(file),
        whole=given.whole.name,
        kernels=given.whole.kernel_ids,
        launches=launches,
        parts=tuple(
            StitchedPart(
                name=one.name,
                count=one.count,
                weight=one.weight,
                file=str(kernels[one.name].file),
                origin=kernels[one.name].origin,
            )
            for one in given.split.parts
        ),
        notes=flag_notes(plan),
    )


def _reference(problem: Problem) -> Chosen:
    file = problem.folder / REFERENCE_FILE
    if not file.is_file():
        raise ToolError(
            f"{problem.name} has no {REFERENCE_FILE}: name a kernel by --use {problem.name}=FILE.cu"
        )
    return Chosen(file, "reference")


def _part(given: SplitFolder, name: str, place: int, file: Path) -> PartNames:
    candidate, problem = read_candidate(file), given.parts[name]
    outcome = parse_header(candidate, problem)
    if outcome.header is None:
        first = outcome.diagnostics[0]
        raise ToolError(
            f"{file} is no candidate for {name}: line {first.line}: {first.message} (kopt check"
            f" {file} --kernel {problem.kernel_ids[0]} --problems {given.folder} says more)"
        )
    label = f"r{place}_{name.removeprefix(f'{given.whole.name}_')}"
    return PartNames(place, label, problem, outcome.header, candidate.source, given.whole)


def _launches(candidate: Candidate, whole: Problem) -> int:
    outcome = parse_header(candidate, whole)
    if outcome.header is None:
        first = outcome.diagnostics[0]
        raise ToolError(f"the parts make no candidate for {whole.name}: {first.message}")
    return max(len(one.launch) for one in outcome.header.variants)
