"""Cache folders that are believed only as long as they are what was put there."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kopt.config.files import staging_folder
from kopt.config.sealed_folder import MANIFEST, damage_notes, is_sealed, publish_sealed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "cache" / "sim" / "entry"
    folder.parent.mkdir(parents=True)
    with staging_folder(folder) as staging:
        (staging / "include").mkdir()
        (staging / "include" / "header.h").write_text("#pragma once\n")
        (staging / "object").write_bytes(bytes(range(256)))
        publish_sealed(staging, folder, durable=True)
    return folder


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "cut": lambda folder: os.truncate(folder / "object", 100),
    "empty": lambda folder: os.truncate(folder / "object", 0),
    "flipped": lambda folder: _flip(folder / "object"),
    "a header flipped": lambda folder: _flip(folder / "include" / "header.h"),
    "a file gone": lambda folder: (folder / "object").unlink(),
    "a file more": lambda folder: (folder / "include" / "other.h").touch(),
    "a flipped manifest": lambda folder: _flip(folder / MANIFEST),
    "no manifest": lambda folder: (folder / MANIFEST).unlink(),
    "an empty manifest": lambda folder: os.truncate(folder / MANIFEST, 0),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_folder_is_removed_and_noted(folder: Path, damage: str) -> None:
    DAMAGE[damage](folder)
    assert not is_sealed(folder)
    assert not folder.exists()
    notes = damage_notes(folder.parents[1])
    assert len(notes) == (damage != "no manifest")  # an older kopt wrote none
    assert all(str(folder) in note for note in notes)


def test_a_sound_folder_is_read_once_a_process(folder: Path) -> None:
    assert is_sealed(folder)
    (folder / "object").chmod(0)
    os.utime(folder)
    assert is_sealed(folder)
    assert not damage_notes(folder.parents[1])


def test_what_is_made_again_is_looked_at_again(folder: Path) -> None:
    _flip(folder / "object")
    assert not is_sealed(folder)
    with staging_folder(folder) as staging:
        publish_sealed(staging, folder)
    assert is_sealed(folder)


def test_a_folder_that_is_not_there_is_not_sealed(tmp_path: Path) -> None:
    assert not is_sealed(tmp_path / "entry")
