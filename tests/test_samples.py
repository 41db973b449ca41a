"""Every sample gets its status: honest kernels of many styles pass, each flaw is named and placed.

The candidates are in tests/samples, with what must come out written in each (support/samples.py).
"""

import fcntl
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.status import Status
from kopt.tools.sim.toolset import find_toolset
from support.samples import Sample, check_sample, describe, read_samples

SAMPLES = read_samples(Path(__file__).parent / "samples")
EVIL = [sample for sample in SAMPLES if sample.path.name.startswith("evil_")]
GOOD = [sample for sample in SAMPLES if sample.path.name.startswith("good_")]


@pytest.fixture(scope="session")
def settings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings whose home all processes of one test run share: the simulator is built once."""
    folder = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):  # one of several processes of pytest-xdist
        folder = folder.parent
    settings = Settings(home=folder / "samples-home", jobs=2)
    with (folder / "samples.lock").open("w") as lock:  # one process builds, the others wait for it
        fcntl.flock(lock, fcntl.LOCK_EX)
        find_toolset(settings)
    return settings


def _name(sample: Sample) -> str:
    return sample.path.stem


@pytest.mark.parametrize("sample", SAMPLES, ids=_name)
def test_sample_gets_its_status(sample: Sample, settings: Settings) -> None:
    result = check_sample(sample, settings)
    found = describe(result)
    assert result.status == sample.status, found
    if sample.says is not None:
        assert sample.says in found
    if sample.marked_lines:
        named = {diagnostic.line for diagnostic in result.diagnostics}
        assert named & sample.marked_lines, found


def test_every_good_sample_passes_the_full_level() -> None:
    wrong = [s.path.name for s in GOOD if (s.status, s.level) != (Status.PASSED, "full")]
    assert wrong == []


def test_no_evil_sample_is_said_to_pass() -> None:
    assert [s.path.name for s in EVIL if s.status is Status.PASSED] == []


def test_every_sample_is_good_or_evil() -> None:
    assert len(GOOD) + len(EVIL) == len(SAMPLES)
    assert len(GOOD) >= 12
    assert len(EVIL) >= 26
