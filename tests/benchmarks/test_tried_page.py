"""The page of what was tried: that it is what the records say, and where winners stand."""

import re
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from markdown_tables import insert_between
from tried_page import MARKS, shipped, shipped_overview, tried_page
from tried_records import (
    FOLDER,
    Tried,
    TriedCandidate,
    TriedSource,
    Winner,
    code_of,
    merged,
    read_tried,
    read_winners,
)

from kopt.kernels.problem_loader import load_problems
from kopt.kernels.status import Provenance, Status, Verdict
from support.bench_results import H100

ROOT = Path(__file__).parents[2]
FILES = sorted(FOLDER.glob("*.jsonl"))
SOURCE = TriedSource(
    sha="5" * 64, name="k.cu", code="0a1b2c3d", note="Fewer loads.", text="/* kopt: 1 */\ncode"
)
WINNER = Winner(
    problem="scale_rows",
    kernel="scale_rows_b8xh64",
    device=H100.name,
    file="b8xh64.sm_90a",
    tune={"BLOCK": 128},
    speedup=1.3,
    code=SOURCE.code,
)


def candidate(seq: int, speedup: float, **changes: Any) -> TriedCandidate:
    """Return a faster candidate with BLOCK 64, 128, ... by its number."""
    known: dict[str, Any] = {
        "kernel": "scale_rows_b8xh64",
        "run": "run-1",
        "seq": seq,
        "date": "2026-01-01",
        "device": H100.name,
        "driver": H100.driver_version,
        "cuda": H100.cuda_version,
        "arch": "sm_90a",
        "source": SOURCE.sha,
        "tune": {"BLOCK": 64 << seq},
        "family": "other",
        "proposer": "sweep",
        "level": "quick",
        "status": Status.PASSED,
        "summary": "agrees",
        "baseline": "flashinfer (PDL on)",
        "speedup": speedup,
        "interval": (speedup - 0.01, speedup + 0.01),
        "verdict": Verdict.FASTER,
        "provenance": Provenance.MEASURED,
        "kernel_us": 4.0,
        "baseline_us": 4.0 * speedup,
    }
    return TriedCandidate(**(known | changes))


def wrong(seq: int) -> TriedCandidate:
    timed = candidate(seq, 1.0, status=Status.INCORRECT, summary="row 3 is wrong")
    lost = ("speedup", "interval", "verdict", "baseline", "kernel_us")
    return timed.model_copy(update=dict.fromkeys(lost))


def page(*candidates: TriedCandidate, winners: tuple[Winner, ...] = ()) -> str:
    return tried_page({"scale_rows": Tried((SOURCE,), candidates)}, winners)


def test_the_overview_is_what_the_records_and_receipts_say() -> None:
    document = (ROOT / "docs" / "results.md").read_text("utf-8")
    assert insert_between(document, MARKS, shipped_overview()) == document


def test_every_winner_has_a_place_or_is_said_to_have_none() -> None:
    text = tried_page(*shipped())
    winners = [one for problem in load_problems().values() for one in read_winners(problem)]
    told = [line for line in text.splitlines() if line.startswith("- promoted: ")]
    assert winners
    for winner in winners:
        words = f"`{winner.problem}/{winner.file}`", f", {winner.speedup:.3f}x"
        (line,) = (one for one in told if all(word in one for word in words))
        assert "; here place " in line or line.endswith("not among the candidates here")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_records_have_every_source_and_are_written_in_order(path: Path) -> None:
    tried = read_tried(path)
    assert tried == merged([tried])
    assert {one.source for one in tried.candidates} == {one.sha for one in tried.sources}
    for one in tried.sources:
        assert sha256(one.text.encode()).hexdigest() == one.sha
        assert one.code == code_of(one.text)


def test_records_stay_small_and_name_of_a_machine_its_gpu_alone() -> None:
    texts = [path.read_text("utf-8") for path in FILES]
    assert 0 < sum(map(len, texts)) < 1_500_000
    others = [
        re.sub(r'"gpu":"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"', "", t) for t in texts
    ]
    assert others != texts
    assert not any(
        mark in rest for rest in others for mark in ("GPU-", "/tmp/", "/root/", "/home/")
    )


def test_a_kernel_is_counted_by_verdict_with_its_best() -> None:
    slow = candidate(1, 0.9, verdict=Verdict.SLOWER)
    text = page(candidate(0, 1.25), slow, wrong(2))
    assert (
        "| `scale_rows_b8xh64` | flashinfer (PDL on) | 3 | 1 | 0 | 1 | 1 | 1.250x "
        "| 1.240 to 1.260 | 4.000 | none promoted |"
    ) in text


def test_what_failed_stands_there_with_its_summary() -> None:
    text = page(candidate(0, 1.25), wrong(1), wrong(2))
    assert "- `incorrect` (2): BLOCK=128; BLOCK=256: row 3 is wrong" in text


def test_notes_and_summaries_stay_in_their_line_and_mean_nothing() -> None:
    hostile = "fine\n\n# Won\n<img src=x> [here](http://x)"
    source = SOURCE.model_copy(update={"note": hostile})
    wrong = candidate(0, 1.0).model_copy(
        update={"status": Status.INCORRECT, "summary": hostile, "speedup": None, "verdict": None}
    )
    page = tried_page({"scale_rows": Tried((source,), (wrong,))}, [])
    shown = r": fine \# Won \<img src=x\> \[here\](http:<!-- -->//x)"
    assert page.count("Won") == page.count(f"{shown}\n") == 2


def test_values_are_ordered_by_what_was_reached_with_them() -> None:
    text = page(candidate(0, 1.1), candidate(1, 1.25), wrong(2))
    reached = "BLOCK: 1.250x with 128, 1.100x with 64, nothing with 256"
    assert f"- `{SOURCE.code}` reached {reached}\n" in text


def test_values_are_not_compared_over_different_baselines() -> None:
    other = candidate(1, 2.0, baseline="reference")
    assert " reached " not in page(candidate(0, 1.1), other)


def test_a_winner_is_found_by_its_values() -> None:
    tried = (candidate(0, 1.4), candidate(1, 1.25), candidate(2, 1.1))
    text = page(*tried, winners=(WINNER,))
    assert "| place 2 of 3 |" in text
    assert "1.300x; here place 2 of 3 with 1.250x (the same code)" in text
    other_text = page(*tried, winners=(replace(WINNER, code="other"),))
    assert "with 1.250x (in another text)" in other_text


def test_a_winner_may_have_one_name_more_which_is_said() -> None:
    later = replace(WINNER, tune={"BLOCK": 128, "SPLIT": 1}, code="other")
    text = page(candidate(1, 1.25), winners=(later,))
    assert "here place 1 of 1 with 1.250x (in another text without SPLIT)" in text


def test_a_slow_candidate_with_all_names_is_not_taken_for_a_winner_of_another_code() -> None:
    later = replace(WINNER, tune={"BLOCK": 128, "SPLIT": 1}, code="other")
    slow = candidate(2, 0.4, tune=later.tune)
    text = page(candidate(1, 1.25), slow, winners=(later,))
    assert "here place 1 of 2 with 1.250x (in another text without SPLIT)" in text


@pytest.mark.parametrize(
    "tune", [{"BLOCK": 32}, {"BLOCK": 128, "ROWS": 2, "HINT": 1}], ids=["value", "two names"]
)
def test_a_winner_with_other_values_is_said_not_to_be_there(tune: dict[str, int]) -> None:
    text = page(candidate(1, 1.25), winners=(replace(WINNER, tune=tune),))
    assert "| not among them |" in text
    assert "these values are not among the candidates here" in text


def test_devices_have_sections_of_their_own() -> None:
    text = page(candidate(0, 1.1), candidate(1, 1.25, device="NVIDIA H200"), winners=(WINNER,))
    assert text.index("## NVIDIA H100") < text.index("## NVIDIA H200")
    assert text.count("| not among them |") == 1
    assert text.count(f"| measured on {H100.name} |") == 1


def test_a_winner_of_this_device_stands_before_one_of_another() -> None:
    other = replace(WINNER, device="NVIDIA H200", speedup=9.0)
    for winners in ((WINNER, other), (other, WINNER)):
        text = page(candidate(1, 1.25), winners=winners)
        assert "1.300x; here place 1 of 1" in text
        assert "9.000x" not in text


def test_a_winner_of_another_device_is_named_with_it() -> None:
    text = page(candidate(1, 1.25), winners=(replace(WINNER, device="NVIDIA H200"),))
    assert "1.300x on NVIDIA H200; not among the candidates here" in text


def test_a_run_names_its_gpu_where_it_was_kept() -> None:
    text = page(candidate(0, 1.1), candidate(1, 1.2, run="run-2", gpu="GPU-0a1b2c3d-0000"))
    assert "| run-1 | - | `0a1b2c3d` |" in text
    assert "| run-2 | 0a1b2c3d | `0a1b2c3d` |" in text


def test_kernels_are_ordered_by_size() -> None:
    large = candidate(0, 1.1, kernel="scale_rows_b128xh64")
    text = page(large, candidate(0, 1.1))
    assert text.index("#### scale_rows_b8xh64") < text.index("#### scale_rows_b128xh64")


def test_the_name_of_a_code_is_of_what_computes() -> None:
    code = code_of("/* kopt: 1 */\nint a = 1;\nint b;\n")
    assert code == code_of("/* kopt: 1\nnote: Faster. */\n// One.\n\nint a = 1;  // two\nint b;\n")
    assert code != code_of("/* kopt: 1 */\nint a = 2;\nint b;\n")


def test_what_belongs_to_a_macro_counts() -> None:
    inside, outside = "#define A 1 \\\n;\n", "#define A 1 \\\n\n;\n"
    assert code_of(f"/* kopt: 1 */\n{inside}") != code_of(f"/* kopt: 1 */\n{outside}")
