"""Print which strategy families a profile names for good kernels, and which those already claim.

    .venv/bin/python benchmarks/suggested_families.py [--profiles FOLDER]

The good kernels are the shipped ones, winners and unproven, at each workload that has evidence,
profiled on the simulator for their own architecture. A family that the kernel's header claims is
advice to do what was done; docs/estimate.md has the aim. With --profiles the profiles are kept in
FOLDER, or read from there: to see what a change of `search/advice/needs.py` does takes seconds.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kopt.config.callbacks import ignore
from kopt.config.settings import Settings, settings_from_environment
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.header_parser import parse_header
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.profile_result import ProfileResult
from kopt.kernels.shipped_kernels import ShippedKernel, shipped_kernels
from kopt.search.advice.needs import with_helpful_families
from kopt.tools.profiling.stage import ProfileDevices, ProfileRequest, profile_candidate
from kopt.tools.sim.device import SimDevice


class Subject(NamedTuple):
    """A shipped kernel at a workload."""

    case: Case
    kernel: ShippedKernel

    @property
    def name(self) -> str:
        """Kernel and architecture."""
        return f"{self.case.problem.kernel_id(self.case.workload)}.{self.kernel.arch}"

    @property
    def claims(self) -> frozenset[str]:
        """The families in its header."""
        header = parse_header(self.case.candidate, self.case.problem).header
        return frozenset(() if header is None else header.family)


def main() -> None:
    """Profile and print."""
    parser = argparse.ArgumentParser(description="Families named for kernels that have them.")
    parser.add_argument("--profiles", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    settings = settings_from_environment()
    named: Counter[str] = Counter()
    claimed: Counter[str] = Counter()
    for subject in subjects():
        profile = kept_profile(subject, options.profiles, settings)
        dtypes = {one.dtype for one in subject.case.problem.tensors}
        helpful = with_helpful_families(profile, dtypes)
        families = {family for suspect in helpful.suspects for family in suspect.families}
        done = families & subject.claims
        named.update(families)
        claimed.update(done)
        others = ", ".join(sorted(families - done))
        print(f"{subject.name:50} claimed: {', '.join(sorted(done)) or '-'}; others: {others}")
    print()
    for family, count in named.most_common():
        print(f"{family:20} {count:3} named, {claimed[family]:3} of them claimed")
    total, wrong = named.total(), claimed.total()
    print(f"{wrong} of {total} ({wrong / total:.0%}) are claimed by the kernel that gets them")


def subjects() -> Iterator[Subject]:
    """Yield the shipped kernels, each with every workload that has evidence."""
    for problem in load_problems().values():
        for workload in problem.workloads:
            for kernel in shipped_kernels(problem, workload):
                yield Subject(Case(problem, workload, read_candidate(kernel.source)), kernel)


def kept_profile(subject: Subject, folder: Path | None, settings: Settings) -> ProfileResult:
    """Return the profile of a kernel, from `folder` if it is there."""
    kept = None if folder is None else folder / f"{subject.name}.json"
    if kept is not None and kept.is_file():
        return ProfileResult.model_validate_json(kept.read_bytes())
    request = ProfileRequest(subject.case, subject.kernel.arch, counters=False, progress=ignore)
    profile = profile_candidate(request, settings, ProfileDevices(SimDevice(settings), None))
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(profile.model_dump_json(), encoding="utf-8")
    return profile


if __name__ == "__main__":
    main()
