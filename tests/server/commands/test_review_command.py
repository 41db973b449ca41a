"""`kopt review`: what it asks of the stage, its page and exit codes, and careless calls."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kopt.kernels.review_result import ReviewResult
from kopt.kernels.status import Status
from kopt.server import opened_device
from kopt.server.exits import ExitCode
from kopt.tools.review import stage as review_stage
from kopt.tools.review.stage import Reviewer, ReviewRequest
from support.bench_results import check
from support.command_line import Kopt
from support.extension_sources import SILU
from support.named_gpu import NamedGpu, opener

ROOT = Path(__file__).parents[3]
REFERENCE = ROOT / "kernels" / "problems" / "silu_and_mul" / "reference.cu"
RACE = ROOT / "tools" / "selftest" / "samples" / "evil_missing_barrier.cu"
KERNEL = "silu_and_mul_b8xh14336"
Answer = Callable[..., list[ReviewRequest]]


def _review(request: ReviewRequest, **fields: object) -> ReviewResult:
    case = request.case
    known: dict[str, object] = {
        "answer": "holds",
        "reasons": (f"{case.workload.name}: 1.700x",),
        "claim": request.claim,
        "status": Status.PASSED,
        "kernel": case.kernel_id,
        "candidate": case.candidate.id,
        "source_name": case.candidate.name,
        "device": "cuda:0",
        "arch": request.arch,
        "check": check(),
        "kopt_version": "0.1.0",
        "elapsed_s": 1.0,
    }
    return ReviewResult.model_validate(known | fields)


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Return a function that sets what the stage gives on a GPU; it returns the requests."""
    monkeypatch.setattr(opened_device, "open_device", opener(NamedGpu()))

    def set_result(*, interrupted: bool = False, **fields: object) -> list[ReviewRequest]:
        requests: list[ReviewRequest] = []

        def stand_in(request: ReviewRequest, where: Reviewer) -> ReviewResult:
            assert where.timer is not None
            requests.append(request)
            result = _review(request, **fields)
            request.keep(result)
            if interrupted:
                raise KeyboardInterrupt
            return result

        monkeypatch.setattr(review_stage, "review_candidate", stand_in)
        return requests

    return set_result


@pytest.mark.parametrize(
    "case",
    [
        ("holds", "The claim holds, because", ExitCode.PASSED),
        ("does_not_hold", "The claim does not hold, because", ExitCode.FELL_SHORT),
        ("cannot_be_told", "It cannot be told whether the claim holds, because", ExitCode.MACHINE),
    ],
)
def test_the_answer_comes_first_and_decides_the_exit_code(
    kopt: Kopt, answer: Answer, tmp_path: Path, case: tuple[str, str, ExitCode]
) -> None:
    found, first, code = case
    answer(answer=found)
    page = tmp_path / "page.md"
    ending = kopt("review", REFERENCE, "--claim", "1.7x", "--kernel", KERNEL, "--page", page)
    assert ending.code == code
    assert ending.stdout.splitlines()[0] == f"{first} b8xh14336: 1.700x."
    assert ending.stdout.splitlines()[-2] == f"Page: {page}"
    assert ending.stdout.splitlines()[-1].startswith(f"Next: cat {page}  #")
    assert page.read_text().splitlines()[2] == f"**{first} b8xh14336: 1.700x.**"


def test_json_is_the_record_with_the_path_of_the_page(kopt: Kopt, answer: Answer) -> None:
    answer()
    ending = kopt("review", REFERENCE, "--claim", "1.7", "--json")
    result = ReviewResult.model_validate_json(ending.stdout)
    assert (ending.stderr, result.answer) == ("", "holds")
    assert result.page_path is not None
    assert Path(result.page_path).parent.name == "reviews"
    assert Path(result.page_path).is_file()


def test_what_is_claimed_reaches_the_stage(kopt: Kopt, answer: Answer) -> None:
    requests = answer()
    kopt("review", REFERENCE, "--claim", "1.7x", "--kernel", "silu_and_mul_b128xh14336")
    kopt("review", REFERENCE, "--claim", "2X", "--mean", "--against", "reference")
    one, every = requests
    assert (one.claim.speedup, [w.name for w in one.claimed]) == (1.7, ["b128xh14336"])
    assert (every.claim.is_mean, every.claim.against) == (True, "reference")
    assert [w.name for w in every.claimed] == ["b8xh14336", "b128xh14336", "b1024xh14336"]


def test_an_interrupted_review_shows_what_is_known_and_writes_no_page(
    kopt: Kopt, answer: Answer, tmp_path: Path
) -> None:
    answer(interrupted=True, answer="cannot_be_told")
    page = tmp_path / "page.md"
    ending = kopt("review", REFERENCE, "--claim", "1.7x", "--page", page)
    assert ending.code == ExitCode.INTERRUPTED
    assert ending.stdout.startswith("It cannot be told")
    assert "interrupted after the check" in ending.stderr
    assert not page.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Missing option '--claim'"),
        (("--claim", "fast"), "'fast' is not of the form 1.7x"),
        (("--claim", "0.9x"), "a claim is above 1x"),
        (("--claim", "nan"), "not of the form 1.7x"),
        (("--claim", "1.7x", "--against", "flashinfr"), "did you mean flashinfer"),
        (("--claim", "1.7x", "--kernel", "silu_and_mul_b9"), "silu_and_mul_b"),
        (("--claim", "1.7x", "--arch", "sm_100a"), "which runs sm_90a"),
        (("--claim", "1.7x", "--call", "out = f(input)"), "--call is for a torch extension"),
    ],
)
def test_a_careless_call_is_one_line(
    kopt: Kopt, answer: Answer, words: tuple[str, ...], said: str
) -> None:
    requests = answer()
    ending = kopt("review", REFERENCE, *words)
    assert (ending.code, requests) == (ExitCode.USAGE, [])
    assert said in ending.stderr.splitlines()[0]


def test_a_page_that_cannot_be_written_is_refused_before_the_work(
    kopt: Kopt, answer: Answer, tmp_path: Path
) -> None:
    requests = answer()
    page = tmp_path / "none" / "page.md"
    ending = kopt("review", REFERENCE, "--claim", "1.7x", "--page", page)
    assert (ending.code, requests) == (ExitCode.MACHINE, [])
    assert f"cannot write {page}" in ending.stderr


def test_markup_and_controls_of_an_author_stay_text_on_the_page(
    kopt: Kopt, answer: Answer, tmp_path: Path
) -> None:
    answer(reasons=("b8: \x1b[31m<script>alert(1)</script> [x](http://y)\n# Holds",))
    page = tmp_path / "page.md"
    kopt("review", REFERENCE, "--claim", "1.7x", "--page", page)
    text = page.read_text()
    assert "\x1b" not in text and "<script" not in text.replace("\\<script", "")
    assert "\n# Holds" not in text and "](http" not in text.replace("\\](http", "")


@pytest.fixture
def extension(tmp_path: Path) -> Path:
    """A file with a torch extension."""
    path = tmp_path / "ext.cu"
    path.write_text(SILU)
    return path


def test_without_a_gpu_an_extension_is_not_run_and_the_page_says_what_to_do(
    kopt: Kopt, extension: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    words = ("--claim", "1.7x", "--kernel", KERNEL, "--device", "sim", "--page", page)
    ending = kopt("review", extension, *words)
    assert ending.code == ExitCode.MACHINE
    assert "a torch extension runs on a GPU alone" in ending.stdout.splitlines()[0]
    assert "review it with --device cuda:0, or move its kernels into a candidate" in " ".join(
        page.read_text().split()
    )
    far = kopt("review", extension, "--arch", "sm_90a", *words[2:], "--claim", "40x")
    assert far.code == ExitCode.FELL_SHORT
    assert "no kernel can be so fast" in " ".join(far.stdout.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name the kernel that it computes with --kernel"),
        (("--kernel", KERNEL, "--call", "out = forward(inputs)"), "did you mean input?"),
        (("--kernel", KERNEL, "--call", "forward"), "is not of the form 'out = forward"),
        (("--kernel", KERNEL, "--mean"), "--mean and --tune are for candidates"),
    ],
)
def test_an_extension_needs_its_kernel_and_a_call_that_fits(
    kopt: Kopt, extension: Path, words: tuple[str, ...], said: str
) -> None:
    ending = kopt("review", extension, "--claim", "1.7x", "--device", "sim", *words)
    assert ending.code == ExitCode.USAGE
    assert said in ending.stderr.splitlines()[0]


@pytest.mark.slow  # builds the candidate and the simulator's parts
def test_without_a_gpu_what_is_wrong_is_refuted(kopt: Kopt, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    ending = kopt(
        *("review", RACE, "--claim", "1.7x", "--device", "sim"),
        *("--kernel", "fused_add_rmsnorm_b8xh4096", "--page", page),
    )
    assert ending.code == ExitCode.FELL_SHORT
    assert ending.stdout.startswith("The claim does not hold, because it is not right: data_race")
    assert "evil_missing_barrier.cu:" in page.read_text().split("## Flags")[1]
