"""Print in which state of the knowledge base real kernels are.

All packaged reference kernels, and the samples that compute what a packaged problem asks for.

    PYTHONPATH=tests .venv/bin/python benchmarks/bench_states.py [--device cuda:0] [--arch ARCH]

Needs no search: each kernel is profiled once and matched with the seed. Times vary, states should
not; on a GPU the counters are read too.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kopt.config.settings import Settings, settings_from_environment
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import find_kernel, load_problems
from kopt.kernels.status import Status
from kopt.search.knowledge.seed_base import load_seed
from kopt.search.knowledge.states.matching import Match, match_state
from kopt.search.knowledge.states.signature import extract_signature
from kopt.tools.device_choice import open_device
from kopt.tools.devices.timer import as_timer
from kopt.tools.profiling.stage import ProfileDevices, ProfileRequest, profile_candidate
from kopt.tools.selftest.sample import SAMPLES, read_samples
from kopt.tools.sim.device import SimDevice


def main() -> None:
    """Profile, match and print."""
    parser = argparse.ArgumentParser(description="Match real kernels with the seed's states.")
    parser.add_argument("--device", default="sim")
    parser.add_argument("--arch", help="default: sm_90a on sim, else the GPU's own")
    options = parser.parse_args()
    settings = settings_from_environment()
    found: list[Match] = []
    with open_device(options.device, settings) as device:
        timing = as_timer(device)
        devices = ProfileDevices(SimDevice(settings), timing)
        arch = options.arch or ("sm_90a" if timing is None else timing.gpu.arch)
        for path, kernel in subjects():
            match = match_of(path, kernel, (arch, settings, devices))
            if match is not None:
                found.append(match)
                rivals = ", ".join(one.id for one in match.rivals)
                print(f"{match.state.id:24} {match.confidence:.2f}  {path.stem} {kernel}  {rivals}")
    states = Counter(match.state.id for match in found)
    new = sum(match.is_new for match in found)
    tied = sum(bool(match.rivals) for match in found)
    print(f"{arch}: {len(found)} programs in {len(states)} states, {new} new, {tied} with a rival")
    for name, count in states.most_common():
        print(f"{count:4}  {name}")


def subjects() -> Iterator[tuple[Path, str]]:
    """Yield source files with the kernels that they are written for."""
    problems = load_problems().values()
    packaged = {kernel for problem in problems for kernel in problem.kernel_ids}
    for problem in problems:
        for kernel in problem.kernel_ids:
            yield problem.folder / "reference.cu", kernel
    for sample in read_samples(SAMPLES):
        if sample.status is Status.PASSED and sample.kernel in packaged:
            yield sample.path, sample.kernel


def match_of(path: Path, kernel: str, where: tuple[str, Settings, ProfileDevices]) -> Match | None:
    """Return the state of one kernel; None where it cannot be profiled on that target."""
    arch, settings, devices = where
    request = ProfileRequest(Case(*find_kernel(kernel), read_candidate(path)), arch)
    profile = profile_candidate(request, settings, devices)
    if profile.bottleneck is None:
        return None
    return match_state(extract_signature(profile), load_seed().states)


if __name__ == "__main__":
    main()
