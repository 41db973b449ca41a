"""Tables of candidates and choices, made on the simulator."""

from collections.abc import Generator
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.kernels.choice_table import ChoiceTable
from kopt.kernels.status import Status
from kopt.server.jobs.records import Progress
from kopt.server.work.perform import perform
from kopt.server.work.requests import NamedSource, TableWork
from kopt.server.work.work_site import WarmDevices, WorkSite
from kopt.tools.sim.toolset import find_toolset
from support.job_works import KERNEL, REFERENCE, job_settings

TWO = REFERENCE.replace("[256, 128, 512, 1024]", "[256, 1024]")
BROKEN = NamedSource(path="broken.cu", source=TWO + "}")
GOOD = NamedSource(path="good.cu", source=TWO)


@pytest.fixture
def told() -> list[Progress]:
    return []


@pytest.fixture
def site(tmp_path: Path, shared_home: Path, told: list[Progress]) -> Generator[WorkSite]:
    settings = job_settings(tmp_path / "home", shared_home)
    find_toolset(settings)  # which the first of a test run builds, and tells the progress
    devices = WarmDevices(settings)
    yield WorkSite(settings, "job-20260101-000000-00000000", told.append, devices)
    devices.close()


def made(work: TableWork, site: WorkSite) -> ChoiceTable:
    table = perform(work, site)
    assert isinstance(table, ChoiceTable)
    return table


@pytest.mark.slow  # several profiles
def test_every_choice_of_a_profile_is_a_row_the_fastest_first(
    site: WorkSite, told: list[Progress]
) -> None:
    work = TableWork(
        tool="profile", kernel=KERNEL, files=(GOOD,), every=True, device="sim", arch="sm_90a"
    )
    table = made(work, site)
    assert (table.status, table.device, table.gpu) == (Status.PASSED, "sim", "H100")
    assert [row.tune for row in table.rows] == [{"BLOCK": 1024}, {"BLOCK": 256}]
    times = [row.estimated_us or 0.0 for row in table.rows]
    assert 0.0 < times[0] < times[1]
    assert [(one.done, one.total) for one in told] == [(0.0, 2.0), (1.0, 2.0)]


@pytest.mark.slow  # several benchmarks
def test_a_benchmark_of_files_checks_each_and_sorts_the_faulty_behind(site: WorkSite) -> None:
    wrong = NamedSource(path="wrong.cu", source=TWO.replace("* up)", "* up * 2.0f)"))
    work = TableWork(
        tool="benchmark",
        kernel=KERNEL,
        files=(wrong, BROKEN, GOOD),
        tune={"BLOCK": 1024},
        every=False,
        device="sim",
    )
    table = made(work, site)
    assert table.status is Status.PASSED
    assert [(row.file, row.status) for row in table.rows] == [
        ("good.cu", Status.PASSED),
        ("wrong.cu", Status.INCORRECT),
        ("broken.cu", Status.COMPILE_ERROR),
    ]
    good, *others = table.rows
    assert good.estimated_us is not None and good.registers_per_thread is not None
    assert all(row.estimated_us is None and row.why for row in others)
    assert table.baseline == "reference" and table.baseline_us is not None
    assert all(row.speedup is None for row in table.rows), "an estimate is no speedup"


@pytest.mark.slow  # several compiles
def test_values_that_a_variant_sets_are_shown_and_not_asked_for(site: WorkSite) -> None:
    launch, rest = TWO.split("launch:\n", 1)[1].split("*/", 1)
    variant = launch.replace("  - kernel:", "      - kernel:").replace("    grid", "        grid")
    variant = variant.replace("    block", "        block").replace("    args", "        args")
    head = TWO.split("launch:\n", 1)[0].replace("[256, 1024]", "[256, 512]")
    when = 'variants:\n  - when: "true"\n    set: {BLOCK: 512}\n    launch:\n'
    varied = NamedSource(path="varied.cu", source=f"{head}{when}{variant}*/{rest}")
    work = TableWork(tool="profile", kernel=KERNEL, files=(varied,), every=False, device="sim")
    (row,) = made(work, site).rows
    assert (row.status, row.why) == (Status.PASSED, "")
    assert (row.tune, row.set_by_variant) == ({"BLOCK": 512}, ("BLOCK",))
    assert row.threads_per_block == 512


@pytest.mark.slow  # several compiles
def test_values_beside_all_hold_for_every_row(site: WorkSite) -> None:
    work = TableWork(
        tool="profile", kernel=KERNEL, files=(GOOD,), tune={"BLOCK": 256}, every=True, device="sim"
    )
    assert [row.tune for row in made(work, site).rows] == [{"BLOCK": 256}]


def test_a_header_with_a_mistake_is_a_row_that_failed_beside_every_choice(site: WorkSite) -> None:
    mistaken = NamedSource(path="mistaken.cu", source=TWO.replace("grid: B", "grid: NOTHING"))
    work = TableWork(
        tool="profile", kernel=KERNEL, files=(mistaken, GOOD), every=True, device="sim"
    )
    assert [(row.file, row.status) for row in made(work, site).rows] == [
        ("good.cu", Status.PASSED),
        ("good.cu", Status.PASSED),
        ("mistaken.cu", Status.PLAN_ERROR),
    ]


def test_a_file_without_choices_and_too_many_rows_are_refused(site: WorkSite) -> None:
    fixed = TWO.replace("tune: {BLOCK: [256, 1024]}\n", "").replace("BLOCK", "256")
    plain = NamedSource(path="plain.cu", source=fixed)
    every = TableWork(tool="profile", kernel=KERNEL, files=(plain,), every=True, device="sim")
    with pytest.raises(ToolError, match=r"plain\.cu has no tune values"):
        perform(every, site)
    values = str(list(range(32, 32 * 61, 32)))
    wide = NamedSource(path="wide.cu", source=TWO.replace("[256, 1024]", values))
    many = every.model_copy(update={"files": (wide, wide)})
    with pytest.raises(ToolError, match="rows are too many, at most 100"):
        perform(many, site)
