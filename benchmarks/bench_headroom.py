"""Print how much faster each kernel can get at most: every library path against launch and bytes.

    .venv/bin/python benchmarks/bench_headroom.py [--device cuda:0] [--kernel PART ...]
        [--seconds N] [--out DIR] [--home DIR]

For every kernel with a library baseline on this GPU: all library paths that pass their check, with
programmatic dependent launch on and off, beside the reference kernel and empty kernels; and the
fastest copy of as many bytes. DIR/headroom.json and headroom.md are written anew after each
measurement. A later call goes on with what is missing there: the copies first, because one worker
serves them all, then one kernel after another.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from headroom_sessions import make_case, time_paths
from headroom_table import CopyTime, Headroom, HeadroomRow, headroom_markdown

from kopt.config.errors import KoptError
from kopt.config.settings import Settings, settings_from_environment
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.roofline import workload_bytes
from kopt.tools.bench.plain_copy import measure_copy
from kopt.tools.device_choice import open_device
from kopt.tools.devices.timer import TimingDevice

ROW_BYTES = 2 * 64 * 2
"""Copies are of a multiple, half of it read and half of it written."""
JSON_NAME, MARKDOWN_NAME = "headroom.json", "headroom.md"


@dataclass(frozen=True)
class Kernel:
    """What has a row."""

    problem: Problem
    workload: Workload

    @property
    def id(self) -> str:
        """Kernel id."""
        return self.problem.kernel_id(self.workload)

    @property
    def total_bytes(self) -> int:
        """Of one call."""
        return workload_bytes(self.problem, self.workload).total_bytes


@dataclass
class Survey:
    """One call: where it measures, how long it may, and what it has."""

    device: TimingDevice
    settings: Settings
    out: Path
    ends_at: float
    """Of time.monotonic(); nothing is begun after it."""
    found: Headroom

    def run(self, kernels: list[Kernel]) -> None:
        """Measure what is missing of `kernels`; stop at the end of the time."""
        known = {row.kernel for row in self.found.rows}
        missing = [kernel for kernel in kernels if kernel.id not in known]
        for kernel in missing:
            if self._has_time() and self._copy_of(kernel) is None:
                self._try(kernel, self._copy)
        for kernel in missing:
            if self._has_time() and self._copy_of(kernel) is not None:
                self._try(kernel, self._paths)

    def _has_time(self) -> bool:
        return time.monotonic() < self.ends_at

    def _try(self, kernel: Kernel, step: Callable[[Kernel], str]) -> None:
        """Measure one thing and write everything; an error of kopt's is kept as such."""
        started = time.monotonic()
        failed = {name: why for name, why in self.found.failed.items() if name != kernel.id}
        try:
            said = step(kernel)
        except KoptError as error:
            said = str(error)
            failed[kernel.id] = said
        self.found = self.found.model_copy(update={"failed": failed})
        print(f"{kernel.id}: {said} [{time.monotonic() - started:.1f} s]", flush=True)
        write(self.out, self.found)

    def _copy_of(self, kernel: Kernel) -> CopyTime | None:
        wanted = copied_bytes(kernel.total_bytes)
        return next((copy for copy in self.found.copies if copy.total_bytes == wanted), None)

    def _copy(self, kernel: Kernel) -> str:
        half = copied_bytes(kernel.total_bytes) // 2
        found = measure_copy(half, half, self.device, self.settings)
        copy = CopyTime(
            total_bytes=found.read_bytes + found.written_bytes,
            **{name: getattr(found, name) for name in ("latency", "block", "vectors", "pdl")},
        )
        self.found = self.found.model_copy(update={"copies": (*self.found.copies, copy)})
        shape = f"{copy.block} x {copy.vectors}{' +PDL' if copy.pdl else ''}"
        return f"copy {copy.latency.median_us:.3f} us, {copy.gb_s:,.0f} GB/s ({shape})"

    def _paths(self, kernel: Kernel) -> str:
        copy = self._copy_of(kernel)
        if copy is None:
            raise ValueError("paths are timed after their copy")
        case = make_case(kernel.problem, kernel.workload, self.device, self.settings)
        row = HeadroomRow(
            kernel=kernel.id,
            rows=kernel.workload.axes[kernel.problem.row_axis or ""],
            total_bytes=kernel.total_bytes,
            measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
            times=time_paths(case),
            copy_time=copy,
            ceiling_gb_s=self.device.copy_ceiling_gb_s(),
        )
        self.found = self.found.model_copy(update={"rows": (*self.found.rows, row)})
        best = row.times.baseline
        return (
            f"{best.label} {best.latency.median_us:.3f} us, floor {row.floor_us:.3f} us,"
            f" headroom {row.headroom:.2f}x, over copy {row.over_copy:.2f}x"
        )


def copied_bytes(total_bytes: int) -> int:
    """Return the bytes that a copy of `total_bytes` reads and writes: half of them each."""
    return -(-total_bytes // ROW_BYTES) * ROW_BYTES


def kernels_of(parts: list[str], capability: tuple[int, int]) -> list[Kernel]:
    """Return the kernels with a library baseline meant for the device, by parts of their ids.

    Products of matrices are left out: bytes and launches do not bound them.
    """
    device = ".".join(map(str, capability))
    return [
        Kernel(problem, workload)
        for problem in load_problems().values()
        if any(device in baseline.devices for baseline in problem.baselines)
        and problem.matrix_flops == "0"
        for workload in problem.workloads
        if not parts or any(part in problem.kernel_id(workload) for part in parts)
    ]


def load(out: Path, device: TimingDevice) -> Headroom:
    """Return what earlier calls measured on this device, or nothing yet."""
    empty = Headroom(gpu=device.facts, planned=0)
    path = out / JSON_NAME
    if not path.is_file():
        return empty
    found = Headroom.model_validate_json(path.read_text("utf-8"))
    if (found.gpu.uuid, found.gpu.driver_version) != (
        device.facts.uuid,
        device.facts.driver_version,
    ):
        raise SystemExit(f"{path} is of {found.gpu.name} {found.gpu.uuid}; name another --out")
    return found


def write(out: Path, found: Headroom) -> None:
    """Write both files whole: beside their places, then into them."""
    out.mkdir(parents=True, exist_ok=True)
    texts = {
        JSON_NAME: found.model_dump_json(by_alias=True, indent=1) + "\n",
        MARKDOWN_NAME: headroom_markdown(found),
    }
    for name, text in texts.items():
        partial = out / f".{name}"
        partial.write_text(text, "utf-8")
        partial.replace(out / name)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure how much faster each kernel can get.")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--kernel", nargs="+", default=[], help="parts of kernel ids")
    parser.add_argument("--seconds", type=float, default=3600.0, help="nothing is begun after")
    parser.add_argument("--out", type=Path, default=Path("headroom"), help="folder of both files")
    parser.add_argument("--home", type=Path, help="KOPT_HOME to use and to keep")
    options = parser.parse_args()
    ends_at = time.monotonic() + options.seconds
    settings = settings_from_environment()
    if options.home is not None:
        settings = replace(settings, home=options.home.absolute())
    with open_device(options.device, settings) as device:
        timing = cast(TimingDevice, device)
        kernels = kernels_of(options.kernel, timing.facts.compute_capability)
        found = load(options.out, timing).model_copy(update={"planned": len(kernels)})
        survey = Survey(timing, settings, options.out, ends_at, found)
        try:
            survey.run(kernels)
        except KeyboardInterrupt:
            print("interrupted; the next call goes on", flush=True)
    print(headroom_markdown(survey.found))


if __name__ == "__main__":
    main()
