"""Arrays through a file: bit for bit, and nothing from outside the file."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.config.errors import InfraError
from kopt.kernels.dtypes import DTYPE_SIZE_BYTES, numpy_dtype
from kopt.tools.gpu.array_file import ALIGNMENT_BYTES, read_arrays, write_arrays
from kopt.tools.gpu.messages import ArrayEntry, ArrayFile


def random_bits(dtype: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return any bit pattern of `dtype`, NaNs included."""
    rng = np.random.default_rng(1)
    size = DTYPE_SIZE_BYTES[dtype] * int(np.prod(shape))
    raw = rng.integers(0, 2 if dtype == "bool" else 256, size, dtype=np.uint8)
    return raw.view(numpy_dtype(dtype)).reshape(shape)


def entry(**changes: Any) -> ArrayEntry:
    fields = {"name": "x", "dtype": "uint16", "shape": (4,), "offset_bytes": 0, **changes}
    return ArrayEntry.model_validate(fields)


@pytest.mark.parametrize("dtype", DTYPE_SIZE_BYTES)
def test_every_dtype_comes_back_bit_for_bit(dtype: str, tmp_path: Path) -> None:
    array = random_bits(dtype, (3, 5))
    file = write_arrays(tmp_path, "inputs", {"x": array}.items())
    found = read_arrays(tmp_path, file, {"x": dtype})["x"]
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()


def test_several_arrays_are_aligned_and_do_not_overlap(tmp_path: Path) -> None:
    arrays = {
        "odd": random_bits("uint8", (7, 11)),
        "one": random_bits("float32", ()),
        "0/out": random_bits("bfloat16", (2, 3, 4)),
        "empty": random_bits("int64", (0, 5)),
    }
    file = write_arrays(tmp_path, "inputs", arrays.items())
    assert [e.offset_bytes % ALIGNMENT_BYTES for e in file.entries] == [0] * 4
    dtypes = {"odd": "uint8", "one": "float32", "0/out": "bfloat16", "empty": "int64"}
    found = read_arrays(tmp_path, file, dtypes)
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
def test_entry_that_does_not_fit_is_refused(bad: ArrayEntry, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(8))
    assert read_arrays(tmp_path, ArrayFile(file="f", entries=(entry(),)), {"x": "float16"})
    with pytest.raises(InfraError):
        read_arrays(tmp_path, ArrayFile(file="f", entries=(bad,)), {"x": "float16"})


def test_two_arrays_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(8))
    with pytest.raises(InfraError, match="same name"):
        read_arrays(tmp_path, ArrayFile(file="f", entries=(entry(), entry())), {"x": "float16"})


@pytest.mark.parametrize("name", ["../outside", "/etc/hostname", "link", "fifo", "folder", "gone"])
def test_only_a_plain_file_of_the_folder_is_read(name: str, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(bytes(8))
    folder = tmp_path / "worker"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "outside")
    os.mkfifo(folder / "fifo")
    (folder / "folder").mkdir()
    with pytest.raises(InfraError, match="array file"):
        read_arrays(folder, ArrayFile(file=name, entries=(entry(),)), {"x": "float16"})
