"""What must stand in a receipt before its timings: check, sanitizer, binary, device.

A promotion writes none without them (`promotion.py`), so a receipt that lacks one was made by
something else, or cut afterwards.
"""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from kopt.kernels.check_result import (
    SANITIZER_TOOLS,
    RaceCheck,
    SanitizerResult,
    WorkloadCheck,
)
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.receipt import Receipt
from kopt.kernels.status import Status

Rule = tuple[bool, str]
"""Whether a receipt breaks it, and what it then says."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


def proof_rules(receipt: Receipt) -> Iterator[Rule]:
    """Give the rules on what was done before the timing, at every workload of the receipt."""
    yield not _is_utc(receipt.promoted_at), "it does not say when it was made, in UTC"
    yield from _of_device(receipt)
    yield receipt.sandbox in (None, ""), "it does not say under which sandbox the candidate ran"
    level = receipt.check.level
    yield level != "full", f"its check is of level {level}, and a promotion needs a full one"
    yield not receipt.check.visible_seeds, "its check names no seed"
    yield not _is_told(receipt.check.race_check), "its race check has findings, or no words"
    names = [entry.workload for entry in receipt.workloads]
    yield len(set(names)) < len(names), "it has a workload twice"
    for entry in receipt.workloads:
        yield from _of_binary(receipt, entry.workload)
        yield from _of_check(receipt, entry.workload)
        yield from _of_sanitizer(receipt, entry.workload, entry.kernel)


def _is_utc(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).utcoffset() == timedelta(0)
    except ValueError:
        return False


def _of_device(receipt: Receipt) -> Iterator[Rule]:
    device = receipt.device
    yield not _is_described(device), "it does not describe the GPU that it was measured on"
    yield (
        device.arch != receipt.arch,
        f"its GPU is of {device.arch}, and it is of {receipt.arch}",
    )


def _is_described(device: DeviceFacts) -> bool:
    texts = (device.uuid, device.name, device.driver_version, device.cuda_version)
    sizes = (device.sm_count, device.l2_bytes, device.memory_bytes)
    return all(text.strip() for text in texts) and min(sizes) > 0


def _of_binary(receipt: Receipt, workload: str) -> Iterator[Rule]:
    serving = [cubin for cubin in receipt.cubins if workload in cubin.workloads]
    yield not serving, f"no cubin serves workload {workload}"
    yield len(serving) > 1, f"several cubins serve workload {workload}"
    (cubin,) = serving
    yield cubin.arch != receipt.arch, f"the cubin of {workload} is of {cubin.arch}"
    yield _SHA256.fullmatch(cubin.sha256) is None, f"the cubin of {workload} has no SHA-256"


def _of_check(receipt: Receipt, workload: str) -> Iterator[Rule]:
    checks = [one for one in receipt.check.workloads if one.workload == workload]
    yield len(checks) != 1, f"it has {len(checks) or 'no'} full check of workload {workload}"
    yield checks[0].status is not Status.PASSED, f"its check of {workload} did not pass"
    yield not _is_whole(checks[0]), f"its check of {workload} met no hidden inputs"


def _is_whole(check: WorkloadCheck) -> bool:
    """Return whether hidden inputs were met: at large workloads they stand for visible ones."""
    return min(check.hidden_seeds, check.executions) > 0


def _is_told(said: RaceCheck | None) -> bool:
    """Return whether a race check passed somewhere or says why it could not be done.

    None is of a receipt of before the simulator was asked.
    """
    if said is None:
        return True
    if said.outcome == "unavailable":
        return bool((said.reason or "").strip())
    return said.outcome == "passed" and bool(said.workloads)


def _of_sanitizer(receipt: Receipt, workload: str, kernel: str) -> Iterator[Rule]:
    results = [one for one in receipt.sanitizer if one.kernel == kernel]
    yield len(results) != 1, f"it does not say what compute-sanitizer found at {workload}"
    (found,) = results
    is_other = found.candidate != receipt.candidate
    yield is_other, f"compute-sanitizer ran another candidate at {workload}"
    is_elsewhere = found.gpu is None or found.gpu.uuid != receipt.device.uuid
    yield is_elsewhere, f"compute-sanitizer ran on another GPU at {workload}"
    for tool in SANITIZER_TOOLS:
        said = _said(found, tool)
        yield said is not None, f"{tool} of compute-sanitizer {said} at {workload}"
    yield found.status is not Status.PASSED, f"compute-sanitizer did not pass at {workload}"


def _said(result: SanitizerResult, tool: str) -> str | None:
    """Return what is wrong with the word of one tool; None if it passed, or says why not."""
    runs = [run for run in result.runs if run.tool == tool]
    if len(runs) != 1:
        return "is missing" if not runs else "stands there twice"
    (run,) = runs
    if run.outcome == "findings" or run.findings or run.status is not Status.PASSED:
        return "has findings"
    if run.outcome != "passed" and not (run.reason or "").strip():
        return "did not judge and does not say why"
    return None
