"""Ten kernels that somebody says are fast, five of them falsely, and the page of each review."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.case import Case
from kopt.kernels.problem import Baseline
from kopt.kernels.review_result import Claim, ReviewAnswer, ReviewResult
from kopt.kernels.status import Status
from kopt.server.views.review_page import review_markdown
from kopt.tools.devices.device import Arrays, ExecutionRequest
from kopt.tools.review.stage import Reviewer, ReviewRequest, review_candidate
from support.bench_cases import CANDIDATE, ROW_MAJOR, bench_problem
from support.promotion_cases import FileCompiler, ScriptedSanitizer
from support.scripted_timer import LibraryScript, Noise, Script, ScriptedTimer
from support.synthetic_check import NumpyDevice

pytestmark = pytest.mark.slow  # ten whole reviews

LIBRARY = {("lib", False): LibraryScript(us=4.0), ("lib", True): LibraryScript(us=3.6)}
ALLOCATES = {
    ("lib", False): LibraryScript(us=6.0, allocations=2),
    ("lib", True): LibraryScript(us=6.0, allocations=2),
}
STEADY = Noise(drift=0.0, walk=0.0, outliers=0.0, white=0.002)


@dataclass(frozen=True)
class Reviewed:
    """A kernel as the device shows it, what is claimed of it, and what the page must say."""

    claim: Claim
    candidate_us: float
    answer: ReviewAnswer
    said: str
    baselines: tuple[Baseline, ...] = ()
    script: Script = field(default_factory=Script)
    sanitizer: Status = Status.PASSED


def _wrong_when_hidden(request: ExecutionRequest, outputs: Arrays) -> None:
    if request.schedule_seed > 0 and request.program.candidate.name != "reference.cu":
        outputs["y_bf16"][0, 0] = 1e4


WITH_LIBRARY = Script(libraries=LIBRARY)
KERNELS = {
    "honest: faster than the reference kernel": Reviewed(
        Claim(speedup=1.25), 4.0, "holds", "1.25x is claimed"
    ),
    "honest: more than was claimed": Reviewed(
        Claim(speedup=1.5), 2.5, "holds", "against reference"
    ),
    "honest: faster than the library": Reviewed(
        Claim(speedup=1.8), 2.0, "holds", "against lib (PDL on)", (ROW_MAJOR,), WITH_LIBRARY
    ),
    "honest: the library by name": Reviewed(
        Claim(speedup=1.8, against="lib"), 2.0, "holds", "against lib", (ROW_MAJOR,), WITH_LIBRARY
    ),
    "honest: a small gain": Reviewed(Claim(speedup=1.05), 5.0 / 1.05, "holds", "1.05x is claimed"),
    "false: a wrong result": Reviewed(
        Claim(speedup=1.25),
        4.0,
        "does_not_hold",
        "it is not right: incorrect",
        script=Script(spoil=_wrong_when_hidden),
    ),
    "false: beyond physics": Reviewed(
        Claim(speedup=7.0), 4.0, "does_not_hold", "no kernel can be so fast"
    ),
    "false: slower than claimed": Reviewed(
        Claim(speedup=1.7), 4.0, "does_not_hold", "1.7x is claimed"
    ),
    "false: against a baseline that does other work": Reviewed(
        Claim(speedup=1.5, against="lib"),
        4.0,
        "does_not_hold",
        "does other work (it allocates memory inside the call",
        (ROW_MAJOR,),
        Script(libraries=ALLOCATES),
    ),
    "false: races": Reviewed(
        Claim(speedup=1.25),
        4.0,
        "does_not_hold",
        "it is not right: data_race, compute-sanitizer: racecheck: scripted hazard",
        sanitizer=Status.DATA_RACE,
    ),
}


Review = Callable[[Reviewed], ReviewResult]


@pytest.fixture
def review(
    tmp_path: Path, settings: Settings, compiler: FileCompiler, sanitizer: ScriptedSanitizer
) -> Review:
    """Return a function that reviews a kernel on a scripted GPU."""
    del compiler

    def run(kernel: Reviewed) -> ReviewResult:
        sanitizer.status = kernel.sanitizer
        problem = bench_problem(tmp_path / "problem", kernel.baselines)
        script = replace(kernel.script, candidate_us=kernel.candidate_us, noise=STEADY)
        timer = ScriptedTimer(script)
        case = Case(problem, problem.workloads[0], CANDIDATE)
        request = ReviewRequest(case, kernel.claim, problem.workloads, arch=timer.facts.arch)
        return review_candidate(request, Reviewer(timer, timer, settings))

    return run


@pytest.mark.parametrize("name", KERNELS)
def test_honest_claims_hold_and_false_ones_do_not(review: Review, name: str) -> None:
    kernel = KERNELS[name]
    result = review(kernel)
    assert result.answer == kernel.answer, result.reasons
    assert (kernel.answer == "holds") == name.startswith("honest")
    page = review_markdown(result)
    verdict = {"holds": "The claim holds", "does_not_hold": "The claim does not hold"}
    assert f"**{verdict[kernel.answer]}, because " in page
    assert kernel.said in page
    assert "## Correctness" in page and "## What the answer does not rest on" in page


def test_nothing_is_timed_of_what_is_wrong_or_races(review: Review) -> None:
    for name in ("false: a wrong result", "false: races"):
        result = review(KERNELS[name])
        assert [one.bench for one in result.workloads if one.bench is not None] == []
    assert "## Speed" not in review_markdown(result)


def test_a_race_that_only_the_simulator_sees_refutes_the_claim(
    review: Review, simulator: NumpyDevice
) -> None:
    simulator.status = Status.DATA_RACE
    result = review(KERNELS["honest: faster than the reference kernel"])
    assert (result.answer, result.status) == ("does_not_hold", Status.DATA_RACE)


def test_what_the_simulator_cannot_judge_is_named_on_the_page(
    review: Review, simulator: NumpyDevice
) -> None:
    seen = review(KERNELS["honest: faster than the reference kernel"])
    assert "- Races: the simulator saw every access at b8xh64" in review_markdown(seen)
    simulator.status = Status.UNSUPPORTED_ON_SIM
    result = review(KERNELS["honest: more than was claimed"])
    assert result.answer == "holds"
    missing = review_markdown(result).split("## What the answer does not rest on")[1]
    assert "- Races between blocks: no race check stands behind this result" in missing


def test_a_sanitizer_that_does_not_judge_leaves_the_claim_open(
    review: Review, sanitizer: ScriptedSanitizer
) -> None:
    sanitizer.unavailable = "no compute-sanitizer here"
    result = review(KERNELS["honest: faster than the reference kernel"])
    assert result.answer == "cannot_be_told"
    assert "compute-sanitizer did not judge all of it" in result.reasons[0]
    refuted = review(KERNELS["false: slower than claimed"])
    assert refuted.answer == "does_not_hold"


def test_the_page_and_the_record_have_the_whole_measurement(review: Review) -> None:
    result = review(KERNELS["honest: faster than the library"])
    (one,) = result.workloads
    assert one.bench is not None and one.limit is not None
    assert one.bench.checked == "full"
    assert one.limit.evidence == "timed here"
    assert one.limit.speedup == pytest.approx(3.6 * 1.02 / 1.1, rel=0.01)
    page = review_markdown(result)
    assert "like for like with lib (PDL on): the same work on the same data" in page
    assert re.search(r"\| b8xh64 \| (1\.99|2\.0[01])", page)  # 2 us, with noise
    assert ReviewResult.model_validate_json(result.model_dump_json(by_alias=True)) == result


def test_a_claim_that_fails_only_when_timed_is_refuted_then(review: Review) -> None:
    def spoil(place: int, outputs: Arrays) -> None:
        outputs["y_bf16"][:] = 0

    result = review(
        replace(KERNELS["honest: more than was claimed"], script=Script(spoil_timed=spoil))
    )
    assert (result.answer, result.status) == ("does_not_hold", Status.INCORRECT)
    bench: BenchResult | None = result.workloads[0].bench
    assert bench is not None and bench.comparisons == ()


def test_what_is_known_is_kept_after_each_step(
    tmp_path: Path, settings: Settings, compiler: FileCompiler, sanitizer: ScriptedSanitizer
) -> None:
    del compiler, sanitizer
    kept: list[ReviewResult] = []
    problem = bench_problem(tmp_path / "problem", shapes=((8, 64), (16, 64)))
    timer = ScriptedTimer(Script(candidate_us=4.0, noise=STEADY))
    case = Case(problem, problem.workloads[0], CANDIDATE)
    request = ReviewRequest(
        case, Claim(speedup=1.25), problem.workloads[:1], arch=timer.facts.arch, keep=kept.append
    )
    result = review_candidate(request, Reviewer(timer, timer, settings))
    assert [one.answer for one in kept[:2]] == ["cannot_be_told"] * 2
    assert [sum(w.bench is not None for w in one.workloads) for one in kept] == [0, 0, 1, 2]
    assert result.mean is not None and result.mean.workloads == ("b8xh64", "b16xh64")
    assert [one.is_claimed for one in result.workloads] == [True, False]
