"""A damaged run file is told as such, with the way out; it hides no other run and no bug."""

import os
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from kopt.config.errors import KoptError, SetupError
from kopt.config.settings import Settings
from kopt.search.reports.run_list import list_runs
from kopt.search.reports.run_report import report_run, view_run
from kopt.search.rounds.advance import run_search
from kopt.search.store.schema import open_viewer, open_writer
from support.scripted_runs import new_store, search

SOUND, DAMAGED = "run-20260101-000000-000", "run-20260102-000000-000"


def _home(home: Path) -> Path:
    """Return the file of one of two finished runs in `home`."""
    for run_id in (SOUND, DAMAGED):
        with new_store(home, run_id) as store:
            run_search(search(store))
    return home / "runs" / DAMAGED / "run.sqlite"


def _denied(_path: object, _mode: int) -> bool:
    return False


def _flipped(data: bytes, count: int, seed: int) -> bytes:
    changed, draw = bytearray(data), random.Random(seed)
    for _ in range(count):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "zeroed head": lambda data: bytes(100) + data[100:],
    "half": lambda data: data[: len(data) // 2],
    "600 bytes": lambda data: data[:600],
    "text": lambda data: b"no database at all\n" * 100,
    "2000 flips": lambda data: _flipped(data, 2000, 1),
    "200 flips": lambda data: _flipped(data, 200, 2),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_run_is_listed_beside_the_sound_ones(tmp_path: Path, damage: str) -> None:
    path = _home(tmp_path)
    damaged = DAMAGE[damage](path.read_bytes())
    path.write_bytes(damaged)
    found = list_runs(Settings(tmp_path))
    assert [run.run for run in found.runs] == [SOUND]
    (other,) = found.damaged
    assert other.run == DAMAGED
    assert "nothing was changed or deleted" in other.why and ".recover" in other.why
    assert path.read_bytes() == damaged


def test_whatever_flips_nothing_but_an_error_of_kopt_is_raised(tmp_path: Path) -> None:
    path = _home(tmp_path)
    data = path.read_bytes()
    for seed in range(60):
        path.write_bytes(_flipped(data, 1 + seed % 30 * 10, seed))
        found = list_runs(Settings(tmp_path))
        assert SOUND in [run.run for run in found.runs]
        try:
            with view_run(DAMAGED, Settings(tmp_path)) as (reader, folder):
                report_run(reader, folder)
        except KoptError:
            pass


@pytest.mark.parametrize("opened", [open_viewer, open_writer])
def test_a_file_that_is_no_database_cannot_be_opened(
    tmp_path: Path, opened: Callable[[Path], sqlite3.Connection]
) -> None:
    path = tmp_path / "run.sqlite"
    path.write_bytes(b"text " * 1000)
    with pytest.raises(SetupError, match=r"run\.sqlite is damaged .*Move the folder"):
        opened(path)


def test_a_run_is_read_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _home(tmp_path)
    monkeypatch.setattr(os, "access", _denied)  # as on a read-only disk
    assert len(list_runs(Settings(tmp_path)).runs) == 2
    assert not list(tmp_path.glob("runs/*/run.sqlite-shm"))
