"""What a sanitizer reports becomes a candidate's status, with its own lines and tensors named."""

from pathlib import Path

import pytest

from kopt.kernels.check_result import SanitizerTool
from kopt.kernels.status import Status
from kopt.tools.gpu.one_shot_files import OneShotBuffer
from kopt.tools.sanitize.findings import JudgedRecords, judge_records, read_log

REPORTS = Path(__file__).parents[2] / "samples" / "reports"
OUT = OneShotBuffer(name="out", address=0x7F0000000000, size_bytes=4)


def judge(tool: SanitizerTool, text: str) -> JudgedRecords:
    return judge_records(tool, read_log(text).records, (OUT,))


@pytest.mark.parametrize(
    ("tool", "status", "line"),
    [
        ("memcheck", Status.OUT_OF_BOUNDS, 17),
        ("initcheck", Status.UNINITIALIZED_READ, 20),
        ("racecheck", Status.DATA_RACE, 41),
        ("synccheck", Status.BARRIER_DIVERGENCE, 22),
    ],
)
def test_each_tool_gives_its_status_and_line(
    tool: SanitizerTool, status: Status, line: int
) -> None:
    found = judge(tool, (REPORTS / f"{tool}.txt").read_text())
    assert found.status is status
    assert (found.diagnostics[0].severity, found.diagnostics[0].line) == ("error", line)
    assert found.diagnostics[0].hint


def test_tensor_is_named_instead_of_its_address() -> None:
    found = judge("memcheck", (REPORTS / "memcheck.txt").read_text())
    assert "after the buffer at `out` of size 4 bytes" in found.diagnostics[0].message
    assert "thread (5,0,0) of block (3,0,0)" in found.diagnostics[0].message


def test_misaligned_access_has_its_own_status() -> None:
    text = (
        "========= Invalid __global__ write of size 4 bytes\n"
        "=========     at unaligned_kernel()+0x100 in memcheck_demo.cu:34\n"
        "=========     by thread (0,0,0) in block (0,0,0)\n"
        "=========     Address 0x7cc43aa00001 is misaligned\n"
        "=========     and is inside the nearest allocation at 0x7cc43aa00000 of size 4 bytes\n"
    )
    assert judge("memcheck", text).status is Status.MISALIGNED


def test_race_names_the_other_line() -> None:
    found = judge("racecheck", (REPORTS / "racecheck.txt").read_text())
    assert "line 51" in found.diagnostics[0].message


def test_warning_is_reported_and_does_not_fail() -> None:
    text = (REPORTS / "racecheck.txt").read_text().replace("Error: Race", "Warning: Race")
    found = judge("racecheck", text)
    assert found.status is Status.PASSED
    assert {diagnostic.severity for diagnostic in found.diagnostics} == {"warning"}
    assert found.harmless == 2


def test_threads_at_one_place_are_one_finding() -> None:
    record = (
        "========= Uninitialized __global__ memory read of size 4 bytes\n"
        "=========     at k(int*)+0x70 in candidate.cu:9\n"
        "=========     by thread ({0},0,0) in block (0,0,0)\n"
        "=========     Address 0x7f3c7ec0{0:04x}\n"
        "=========\n"
    )
    found = judge("initcheck", "".join(record.format(thread) for thread in range(32)))
    assert len(found.diagnostics) == 1
    assert "32 like it" in found.diagnostics[0].message


def test_place_in_a_header_names_the_header() -> None:
    text = (
        "========= Barrier error detected. Invalid arguments\n"
        "=========     at __syncwarp(unsigned int)+0xf0 in sm_30_intrinsics.hpp:110\n"
        "=========     by thread (0,0,0) in block (0,0,0)\n"
    )
    finding = judge("synccheck", text).diagnostics[0]
    assert (finding.file, finding.line) == ("sm_30_intrinsics.hpp", 110)


def test_caller_in_the_candidate_is_preferred_to_a_header() -> None:
    text = (
        "========= Barrier error detected. Invalid arguments\n"
        "=========     at __syncwarp(unsigned int)+0xf0 in sm_30_intrinsics.hpp:110\n"
        "=========     by thread (0,0,0) in block (0,0,0)\n"
        "=========         Device Frame: k(int *)+0x3c0 in candidate.cu:48\n"
    )
    finding = judge("synccheck", text).diagnostics[0]
    assert (finding.file, finding.line) == (None, 48)


@pytest.mark.parametrize(
    "message",
    [
        'Internal Sanitizer Error: Device not supported. Please refer to the "Supported Devices"',
        "Error: Target application terminated before first instrumented API call",
    ],
)
def test_trouble_of_the_tool_is_no_finding(message: str) -> None:
    found = judge("memcheck", f"========= {message}\n========= ERROR SUMMARY: 1 error\n")
    assert (found.status, found.diagnostics) == (Status.PASSED, ())
    assert found.trouble is not None
    assert found.trouble in message


def test_failed_cuda_call_is_no_finding_of_the_kernel() -> None:
    text = (
        '========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch '
        'failure" on CUDA API call to cuStreamSynchronize.\n'
    )
    assert judge("memcheck", text) == JudgedRecords(Status.PASSED, harmless=1)
