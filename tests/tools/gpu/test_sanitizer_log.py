"""Records are read whole from what compute-sanitizer prints.

The samples were printed by compute-sanitizer (2025.3.1, 2026.1.1 and 2026.4.0 print the same) from
record files made by hand; texts within this file are those of NVIDIA's manual.
"""

from pathlib import Path

import pytest

from kopt.tools.sanitize.findings import CodePlace, read_log

REPORTS = Path(__file__).parents[2] / "samples" / "reports"


@pytest.mark.parametrize("tool", ["memcheck", "initcheck", "racecheck", "synccheck"])
def test_every_record_is_read_and_counted(tool: str) -> None:
    log = read_log((REPORTS / f"{tool}.txt").read_text())
    assert (len(log.records), log.reported) == (2, 2)


def test_record_has_message_place_thread_and_block() -> None:
    record = read_log((REPORTS / "memcheck.txt").read_text()).records[0]
    assert record.message == "Invalid __global__ write of size 4 bytes"
    assert record.places == (CodePlace("fused_add", "candidate.cu", 17),)
    assert (record.thread, record.block) == ("5,0,0", "3,0,0")


def test_host_frames_are_left_out() -> None:
    record = read_log((REPORTS / "memcheck.txt").read_text()).records[0]
    assert not any("Host" in detail or "host" in detail for detail in record.details)


def test_caller_of_a_device_function_is_a_place_too() -> None:
    record = read_log((REPORTS / "memcheck.txt").read_text()).records[1]
    assert record.places == (
        CodePlace("helper(int*, int)", "candidate.cu", 18),
        CodePlace("fused_add", "candidate.cu", 40),
    )


def test_race_names_every_access() -> None:
    first, second = read_log((REPORTS / "racecheck.txt").read_text()).records
    assert [place.line for place in first.places] == [41, 51]
    assert [place.line for place in second.places] == [42, 51, 52]


def test_file_is_named_without_its_folders() -> None:
    text = "========= Barrier error detected. Divergent thread(s) in warp\n"
    record = read_log(f"{text}=========     at f(int *)+0x70 in /home/x.cu:41\n").records[0]
    assert record.places == (CodePlace("f(int *)", "x.cu", 41),)


def test_place_without_lines_has_none() -> None:
    text = "========= Invalid __global__ write of size 4 bytes\n=========     at k(int*)+0x50\n"
    assert read_log(text).records[0].places == (CodePlace("k(int*)", None, None),)


def test_program_output_between_records_is_ignored() -> None:
    text = (REPORTS / "synccheck.txt").read_text()
    mixed = text.replace("\n", "\nprinted by the program\n")
    assert read_log(mixed) == read_log(text)


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("ERROR SUMMARY: 0 errors", 0),
        ("ERROR SUMMARY: 1 error", 1),
        ("RACECHECK SUMMARY: 3 hazards displayed (2 errors, 1 warnings)", 3),
    ],
)
def test_summary_is_read(line: str, count: int) -> None:
    assert read_log(f"========= COMPUTE-SANITIZER\n========= {line}\n").reported == count


def test_log_that_ends_early_has_no_summary() -> None:
    text = (REPORTS / "memcheck.txt").read_text()
    cut = text[: text.index("=========     by thread")]
    log = read_log(cut)
    assert log.reported is None
    assert len(log.records) == 1
