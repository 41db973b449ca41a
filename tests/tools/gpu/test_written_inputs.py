"""Inputs that lie in a worker's folder already are not written again."""

import os
from pathlib import Path

import numpy as np

from kopt.tools.devices.device import Arrays
from kopt.tools.gpu.array_file import WrittenInputs
from kopt.tools.gpu.described_arrays import ArrayFile


def mark(folder: Path, file: ArrayFile) -> None:
    """Give the file a time that a new one would not have."""
    os.utime(folder / file.file, (1, 1))


def is_marked(folder: Path, file: ArrayFile) -> bool:
    """Whether it is still that file."""
    return (folder / file.file).stat().st_mtime == 1


def arrays() -> Arrays:
    """Return new arrays of equal values."""
    return {"x": np.ones(4, dtype=np.float32), "w": np.zeros(2, dtype=np.uint16)}


def test_same_arrays_in_a_new_mapping_are_written_once(tmp_path: Path) -> None:
    inputs, given = WrittenInputs(), arrays()
    mark(tmp_path, inputs.file_in(tmp_path, given))
    assert is_marked(tmp_path, inputs.file_in(tmp_path, dict(given)))


def test_equal_values_in_other_arrays_are_written(tmp_path: Path) -> None:
    inputs = WrittenInputs()
    mark(tmp_path, inputs.file_in(tmp_path, arrays()))
    assert not is_marked(tmp_path, inputs.file_in(tmp_path, arrays()))


def test_one_array_more_or_less_is_written(tmp_path: Path) -> None:
    inputs, given = WrittenInputs(), arrays()
    mark(tmp_path, inputs.file_in(tmp_path, given))
    file = inputs.file_in(tmp_path, {"x": given["x"]})
    assert not is_marked(tmp_path, file)
    assert [entry.name for entry in file.entries] == ["x"]


def test_folder_of_another_worker_gets_its_own_file(tmp_path: Path) -> None:
    inputs, given = WrittenInputs(), arrays()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        assert (tmp_path / name / inputs.file_in(tmp_path / name, given).file).is_file()
