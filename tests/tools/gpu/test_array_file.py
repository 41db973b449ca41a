"""Arrays through a file: bit for bit, and nothing from outside the file."""

import errno
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.config.errors import InfraError
from kopt.kernels.dtypes import DTYPE_SIZE_BYTES, numpy_dtype
from kopt.tools.devices.device import Arrays
from kopt.tools.gpu import array_file
from kopt.tools.gpu.array_file import (
    ALIGNMENT_BYTES,
    MappedFile,
    overwrite_arrays,
    read_arrays,
    write_arrays,
)
from kopt.tools.gpu.described_arrays import ArrayEntry, ArrayFile

Read = Callable[[Path, ArrayFile, Mapping[str, str]], Arrays]
Write = Callable[[Path, str, Iterable[tuple[str, npt.NDArray[Any]]]], ArrayFile]


def map_arrays(folder: Path, file: ArrayFile, dtypes: Mapping[str, str]) -> Arrays:
    """Read without a copy."""
    return MappedFile(folder, file).arrays(dtypes)


EACH_READ = pytest.mark.parametrize("read", [read_arrays, map_arrays])
EACH_WRITE = pytest.mark.parametrize("write", [write_arrays, overwrite_arrays])


def random_bits(dtype: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return any bit pattern of `dtype`, NaNs included."""
    rng = np.random.default_rng(1)
    size = DTYPE_SIZE_BYTES[dtype] * int(np.prod(shape))
    raw = rng.integers(0, 2 if dtype == "bool" else 256, size, dtype=np.uint8)
    return raw.view(numpy_dtype(dtype)).reshape(shape)


def entry(**changes: Any) -> ArrayEntry:
    fields = {"name": "x", "dtype": "uint16", "shape": (4,), "offset_bytes": 0, **changes}
    return ArrayEntry.model_validate(fields)


@EACH_READ
@pytest.mark.parametrize("dtype", DTYPE_SIZE_BYTES)
def test_every_dtype_comes_back_bit_for_bit(dtype: str, read: Read, tmp_path: Path) -> None:
    array = random_bits(dtype, (3, 5))
    file = write_arrays(tmp_path, "inputs", {"x": array}.items())
    found = read(tmp_path, file, {"x": dtype})["x"]
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()


@EACH_READ
@EACH_WRITE
def test_several_arrays_are_aligned_and_do_not_overlap(
    write: Write, read: Read, tmp_path: Path
) -> None:
    arrays = {
        "odd": random_bits("uint8", (7, 11)),
        "one": random_bits("float32", ()),
        "0/out": random_bits("bfloat16", (2, 3, 4)),
        "empty": random_bits("int64", (0, 5)),
    }
    file = write(tmp_path, "inputs", arrays.items())
    assert [e.offset_bytes % ALIGNMENT_BYTES for e in file.entries] == [0] * 4
    dtypes = {"odd": "uint8", "one": "float32", "0/out": "bfloat16", "empty": "int64"}
    found = read(tmp_path, file, dtypes)
    assert {name: a.tobytes() for name, a in found.items()} == {
        name: a.tobytes() for name, a in arrays.items()
    }
    assert {name: a.shape for name, a in found.items()} == {n: a.shape for n, a in arrays.items()}


def test_array_that_is_not_contiguous_is_written_in_its_order(tmp_path: Path) -> None:
    array = np.arange(24, dtype=np.int32).reshape(4, 6).T[::2]
    found = read_arrays(tmp_path, write_arrays(tmp_path, "f", {"x": array}.items()), {"x": "int32"})
    assert (found["x"] == array).all()


def test_what_was_read_does_not_follow_later_writes(tmp_path: Path) -> None:
    file = write_arrays(tmp_path, "f", {"x": np.zeros(4, np.uint16)}.items())
    found = read_arrays(tmp_path, file, {"x": "bfloat16"})["x"]
    (tmp_path / "f").write_bytes(b"\xff" * 8)
    assert found.tobytes() == bytes(8)


@EACH_WRITE
def test_a_large_array_comes_back_behind_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Write
) -> None:
    monkeypatch.setattr(array_file, "LARGE_BYTES", 1 << 12)
    few, many = np.arange(5, dtype=np.uint16), np.arange(3 << 10, dtype=np.uint32)
    for _ in range(2):  # the second time over what lies there
        file = write(tmp_path, "file", [("few", few), ("many", many)])
        found = read_arrays(tmp_path, file, {"few": "int16", "many": "int32"})
        assert np.array_equal(found["few"], few) and np.array_equal(found["many"], many)
        many = many[::-1]


def test_a_large_array_without_room_is_an_error_and_no_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(array_file, "LARGE_BYTES", 1 << 12)
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="no space left"):
        write_arrays(tmp_path, "file", [("many", np.zeros(1 << 12, dtype=np.uint32))])


def test_a_file_is_replaced_and_not_written_over(tmp_path: Path) -> None:
    write_arrays(tmp_path, "f", {"x": np.zeros(4, np.uint16)}.items())
    with (tmp_path / "f").open("rb") as before:
        write_arrays(tmp_path, "f", {"x": np.ones(4, np.uint16)}.items())
        assert before.read() == bytes(8)


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(entry(shape=(5,)), id="longer than the file"),
        pytest.param(entry(offset_bytes=2), id="begins too late"),
        pytest.param(entry(offset_bytes=-2, shape=(1,)), id="before the file"),
        pytest.param(entry(shape=(-1, -4)), id="negative extents"),
        pytest.param(entry(shape=(1 << 62, 1 << 62)), id="product beyond 64 bits"),
        pytest.param(entry(dtype="uint32", shape=(2,)), id="another width"),
        pytest.param(entry(dtype="object"), id="a dtype that is no storage"),
        pytest.param(entry(name="y"), id="a name that nobody asked for"),
    ],
)
@EACH_READ
def test_entry_that_does_not_fit_is_refused(bad: ArrayEntry, read: Read, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(8))
    assert read(tmp_path, ArrayFile(file="f", entries=(entry(),)), {"x": "float16"})
    with pytest.raises(InfraError):
        read(tmp_path, ArrayFile(file="f", entries=(bad,)), {"x": "float16"})


@EACH_READ
def test_two_arrays_of_one_name_are_refused(read: Read, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(8))
    with pytest.raises(InfraError, match="same name"):
        read(tmp_path, ArrayFile(file="f", entries=(entry(), entry())), {"x": "float16"})


@pytest.mark.parametrize("name", ["../outside", "/etc/hostname", "link", "fifo", "folder", "gone"])
@EACH_READ
def test_only_a_plain_file_of_the_folder_is_read(name: str, read: Read, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(bytes(8))
    folder = tmp_path / "worker"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "outside")
    os.mkfifo(folder / "fifo")
    (folder / "folder").mkdir()
    with pytest.raises(InfraError, match="array file"):
        read(folder, ArrayFile(file=name, entries=(entry(),)), {"x": "float16"})


def test_a_file_without_a_byte_can_be_mapped(tmp_path: Path) -> None:
    file = write_arrays(tmp_path, "f", {"x": np.zeros((0, 3), np.uint16)}.items())
    mapped = MappedFile(tmp_path, file)
    assert mapped.arrays({"x": "float16"})["x"].shape == (0, 3)
    mapped.release()


def test_mapped_arrays_cannot_be_written(tmp_path: Path) -> None:
    file = write_arrays(tmp_path, "f", {"x": np.zeros(4, np.uint16)}.items())
    found = map_arrays(tmp_path, file, {"x": "float16"})["x"]
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1


def test_a_released_file_is_written_over_and_never_shrinks(tmp_path: Path) -> None:
    zeros = overwrite_arrays(tmp_path, "f", {"x": np.zeros(400, np.uint16)}.items())
    with (tmp_path / "f").open("rb") as first:  # so that a new file would get another number
        before = os.fstat(first.fileno())
        MappedFile(tmp_path, zeros).release()
        ones = overwrite_arrays(tmp_path, "f", {"x": np.ones(4, np.uint16)}.items())
        after = (tmp_path / "f").stat()
    assert (after.st_ino, after.st_size) == (before.st_ino, before.st_size)
    assert read_arrays(tmp_path, ones, {"x": "int16"})["x"].tolist() == [1] * 4


def test_an_array_in_use_keeps_its_values_when_the_file_is_released(tmp_path: Path) -> None:
    mapped = MappedFile(
        tmp_path, overwrite_arrays(tmp_path, "f", {"x": np.zeros(4, np.uint16)}.items())
    )
    row = mapped.arrays({"x": "int16"})["x"][1:]
    mapped.release()
    ones = overwrite_arrays(tmp_path, "f", {"x": np.ones(4, np.uint16)}.items())
    assert row.tolist() == [0] * 3
    assert read_arrays(tmp_path, ones, {"x": "int16"})["x"].tolist() == [1] * 4


def test_a_very_large_file_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_file, "KEPT_BYTES", 7)
    file = overwrite_arrays(tmp_path, "f", {"x": np.zeros(4, np.uint16)}.items())
    MappedFile(tmp_path, file).release()
    assert not (tmp_path / "f").exists()


def test_a_link_in_the_place_of_the_file_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"kept")
    (tmp_path / "f").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="symbolic"):
        overwrite_arrays(tmp_path, "f", {"x": np.zeros(4, np.uint16)}.items())
    assert (tmp_path / "outside").read_bytes() == b"kept"
