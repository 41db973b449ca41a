"""`kopt bench`: how results read, ends and documents, over results that the stage would give."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kopt.config.errors import InfraError, SetupError, ToolError
from kopt.kernels.bench_result import BaselinePath, BenchResult, LikeForLike, Rotation
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status, Verdict
from kopt.server import opened_device
from kopt.server.exits import ExitCode
from kopt.tools.bench import estimated as estimated_stage
from kopt.tools.bench import stage as bench_stage
from kopt.tools.bench.request import BenchRequest
from support.bench_results import H100, bench_result, comparison, failed_bench
from support.command_line import Kopt
from support.named_gpu import NamedGpu, opener

REFERENCE = Path(__file__).parents[2] / "kernels" / "problems" / "silu_and_mul" / "reference.cu"
Answer = Callable[[BenchResult | BaseException], list[BenchRequest]]


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Return a function that sets what the stage gives on a GPU; it returns the requests."""
    monkeypatch.setattr(opened_device, "open_device", opener(NamedGpu()))

    def set_result(result: BenchResult | BaseException) -> list[BenchRequest]:
        requests: list[BenchRequest] = []

        def bench(request: BenchRequest, *_: object) -> BenchResult:
            requests.append(request)
            if isinstance(result, BaseException):
                raise result
            return result

        monkeypatch.setattr(bench_stage, "bench_candidate", bench)
        return requests

    return set_result


@pytest.mark.parametrize(
    ("result", "first_line", "code"),
    [
        (
            bench_result(Verdict.FASTER),
            "1.213x faster than flashinfer_cute (PDL on), 95 % interval 1.205 to 1.221, 100 pairs,"
            " noise threshold 0.3 %",
            ExitCode.PASSED,
        ),
        (
            bench_result(
                comparisons=(comparison(Verdict.SLOWER, speedup=0.9, interval=(0.89, 0.91)),),
                verdict=Verdict.SLOWER,
            ),
            "Slower than flashinfer_cute (PDL on): 0.90x its speed, 95 % interval 0.89 to 0.91, 100"
            " pairs, noise threshold 0.3 %",
            ExitCode.FELL_SHORT,
        ),
        (
            bench_result(
                comparisons=(
                    comparison(Verdict.INCONCLUSIVE, speedup=1.001, interval=(0.998, 1.004)),
                ),
                verdict=Verdict.INCONCLUSIVE,
            ),
            "No difference from flashinfer_cute (PDL on) that can be told: 1.001x, 95 % interval"
            " 0.998 to 1.004, 100 pairs, noise threshold 0.3 %",
            ExitCode.PASSED,
        ),
        (
            bench_result(
                comparisons=(comparison(Verdict.IMPOSSIBLE, speedup=None, interval=None),),
                verdict=Verdict.IMPOSSIBLE,
            ),
            "Impossible: shorter than the memory needs for the bytes. The time counts for nothing",
            ExitCode.FELL_SHORT,
        ),
        (failed_bench(Status.INCORRECT), "incorrect  not timed", ExitCode.FELL_SHORT),
    ],
    ids=["faster", "slower", "inconclusive", "impossible", "incorrect"],
)
def test_the_verdict_comes_first_in_words_and_decides_the_exit_code(
    kopt: Kopt, answer: Answer, result: BenchResult, first_line: str, code: ExitCode
) -> None:
    answer(result)
    ending = kopt("bench", REFERENCE)
    assert ending.stdout.splitlines()[0] == first_line
    assert ending.code == code


def test_what_is_not_like_for_like_is_said_with_the_verdict(kopt: Kopt, answer: Answer) -> None:
    unlike = LikeForLike(holds=False, differences=("another scale layout",))
    answer(
        bench_result(
            Verdict.NOT_LIKE_FOR_LIKE,
            comparisons=(comparison(Verdict.NOT_LIKE_FOR_LIKE, like_for_like=unlike),),
        )
    )
    first = kopt("bench", REFERENCE).stdout.splitlines()[0]
    assert first.startswith(
        "Not like for like with flashinfer_cute (PDL on) (another scale layout)"
    )


def test_faster_after_a_quick_check_says_so_and_ends_with_1(kopt: Kopt, answer: Answer) -> None:
    requests = answer(bench_result(checked="quick"))
    ran = kopt("bench", REFERENCE, "--quick")
    assert "; quick check only: `kopt check --level full` decides" in " ".join(ran.stdout.split())
    assert ran.code == ExitCode.FELL_SHORT
    kopt("bench", REFERENCE)
    assert [request.proves for request in requests] == [False, True]


@pytest.mark.parametrize(
    "said",
    [
        "on cuda:0, NVIDIA H100 80GB HBM3",
        "2.390 us measured",
        "Candidate above empty kernels of its launch shape: 1.280 us (measured)",
        "Bytes that the problem needs: 2,100 GB/s (bytes computed, time measured), 70 % of the copy"
        " bandwidth 3,000 GB/s (measured)",
        "0.200 us (computed from the data sheet)",
        "With a warm L2: 1.900 us (measured)",
        "107 sets of 1,900,000 bytes in turn, 4.1 times the L2: cold",
        "214 of 214 equal the checked ones bit by bit",
        "SM 1980 MHz, memory 2619 MHz, up to 42 C, throttle reasons: none (measured)",
        "Check: passed, level quick on cuda:0, sandbox bubblewrap",
        "Not timed: flashinfer (PDL off): failed check, output never written",
    ],
)
def test_every_number_stands_with_how_it_came_about(kopt: Kopt, answer: Answer, said: str) -> None:
    answer(bench_result())
    assert said in kopt("bench", REFERENCE).stdout


def test_full_detail_adds_spread_device_and_noise_floor(kopt: Kopt, answer: Answer) -> None:
    answer(bench_result())
    concise = kopt("bench", REFERENCE).stdout
    full = kopt("bench", REFERENCE, "--detail", "full").stdout
    for said in ("p90", "GPU-1, driver 580.159.04", "A/A median 0.1 %"):
        assert said in full
        assert said not in concise


def test_json_is_the_record_and_has_every_pair_with_full_detail_only(
    kopt: Kopt, answer: Answer
) -> None:
    answer(bench_result())
    concise = kopt("bench", REFERENCE, "--json")
    assert BenchResult.model_validate_json(concise.stdout).verdict is Verdict.FASTER
    assert concise.stderr == ""
    assert concise.document["comparisons"][0]["log_ratios"] == []
    full = kopt("bench", REFERENCE, "--json", "--detail", "full").document
    assert full["comparisons"][0]["log_ratios"] == [0.19, 0.2]


def test_diagnostics_and_advice_say_why_nothing_was_timed(kopt: Kopt, answer: Answer) -> None:
    found = Diagnostic(message="results of timed calls differ from the checked ones")
    answer(failed_bench(Status.REWARD_HACK, diagnostics=(found,)))
    text = kopt("bench", REFERENCE).stdout
    assert "results of timed calls differ" in text
    assert "What to do: Compute the result" in text


def test_flags_reach_the_stage(kopt: Kopt, answer: Answer) -> None:
    requests = answer(bench_result())
    kopt(
        *("bench", REFERENCE, "--kernel", "silu_and_mul_b128xh14336", "--tune", "BLOCK=512"),
        *("--baseline", "reference", "--pairs", "200"),
    )
    (request,) = requests
    assert (request.case.problem.name, request.case.workload.name) == (
        "silu_and_mul",
        "b128xh14336",
    )
    assert (request.case.tune, request.baselines, request.min_pairs) == (
        {"BLOCK": 512},
        "reference",
        200,
    )


def test_without_a_gpu_the_verdict_is_estimated_and_says_so_loudly(
    kopt: Kopt, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimated = comparison(
        Verdict.ESTIMATED,
        baseline=BaselinePath(name="reference"),
        interval=None,
        provenance="estimated",
        pairs=0,
        noise_floor=None,
    )
    result = bench_result(
        Verdict.ESTIMATED, device="sim", gpu=None, comparisons=(estimated,), state=None
    )

    def bench(*_: object) -> BenchResult:
        return result

    monkeypatch.setattr(estimated_stage, "bench_estimated", bench)
    ending = kopt("bench", REFERENCE, "--device", "sim")
    assert ending.code == ExitCode.PASSED
    assert ending.stdout.startswith("ESTIMATED, NOT MEASURED: 1.21x the speed of reference\n")
    assert "Nothing here was measured: estimates for" in ending.stdout
    assert "On a machine with a GPU: --device cuda:0." in ending.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name a FILE to time, or --all"),
        (("--all", REFERENCE), "--all takes no FILE"),
        (("--all", "--tune", "BLOCK=512"), "--tune needs a FILE"),
        (("--all", "--pairs", "200"), "--pairs needs a FILE"),
        (("--all", "--detail", "full"), "--detail full goes with neither --all nor --promote"),
        ((REFERENCE, "--promote", "--detail", "full"), "--detail full goes with neither"),
        ((REFERENCE, "--markdown", "x.md"), "--markdown needs --all"),
        ((REFERENCE, "--kernel", "a", "--kernel", "b"), "give --kernel once"),
        ((REFERENCE, "--baseline", "cublas"), "cublas"),
        ((REFERENCE, "--pairs", "20"), "--pairs"),
        ((REFERENCE, "--arch", "sm_100a"), "cuda:0 is NVIDIA H100 80GB HBM3, which runs sm_90a"),
        (("no/such.cu", "--kernel", "silu_and_mul_b8xh14336"), "cannot read no/such.cu"),
        (("--all", "--kernel", "conv"), "no kernel id contains 'conv'"),
    ],
)
def test_a_careless_call_is_one_line(
    kopt: Kopt, answer: Answer, words: tuple[object, ...], said: str
) -> None:
    answer(AssertionError("nothing is timed"))
    ending = kopt("bench", *words)
    assert ending.code == ExitCode.USAGE
    assert said in ending.stderr.splitlines()[0]


@pytest.mark.parametrize("choice", ["library", "every"])
def test_a_library_is_not_replaced_by_the_reference_kernel_on_sim(kopt: Kopt, choice: str) -> None:
    ending = kopt("bench", REFERENCE, "--device", "sim", "--baseline", choice)
    assert (ending.code, ending.stdout) == (ExitCode.USAGE, "")
    assert f"--baseline {choice} runs libraries, which needs a GPU" in ending.stderr


def test_times_are_called_cold_only_where_the_sets_overflow_the_l2(
    kopt: Kopt, answer: Answer
) -> None:
    answer(bench_result(rotation=Rotation(sets=8, set_bytes=1 << 20, over_l2=0.2)))
    text = kopt("bench", REFERENCE).stdout
    assert "Doubt: times are warm: the buffer sets do not fill the L2 twice" in text
    assert "cold" not in text


@pytest.mark.slow  # a whole benchmark
def test_an_estimate_has_no_spread(kopt: Kopt) -> None:
    text = kopt("bench", REFERENCE, "--device", "sim", "--detail", "full").stdout
    row = next(line for line in text.splitlines() if line.startswith("candidate"))
    assert row.split()[3:] == ["estimated", "-", "-", "-", "-"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SetupError("no nvcc"), ExitCode.MACHINE),
        (InfraError("the GPU worker ended"), ExitCode.MACHINE),
        (ToolError("no library path"), ExitCode.USAGE),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
    ],
)
def test_every_other_ending_has_its_exit_code_and_one_json_document(
    kopt: Kopt, answer: Answer, error: BaseException, code: ExitCode
) -> None:
    answer(error)
    ending = kopt("bench", REFERENCE, "--json")
    assert ending.code == ending.document["exit_code"] == code
    assert "Traceback" not in ending.stderr


def test_who_holds_the_gpu_is_told_while_waiting(
    kopt: Kopt, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(bench_result())
    monkeypatch.setattr(
        opened_device, "open_device", opener(NamedGpu(), "waiting for cuda:0, 2 before")
    )
    assert "waiting for cuda:0, 2 before\n" in kopt("bench", REFERENCE).stderr
    assert kopt("bench", REFERENCE, "--json").stderr == ""


def test_a_gpu_that_is_not_there_is_one_line_with_the_way_out(kopt: Kopt) -> None:
    ending = kopt("bench", REFERENCE, "--device", "cuda:999", "--json")
    assert ending.code == ExitCode.MACHINE
    assert (
        "--device sim" in ending.document["message"] or "CUDA shows" in ending.document["message"]
    )
    assert H100.name not in ending.stderr
