"""The compile cache: what is stored comes back, damaged entries do not, one process compiles."""

import hashlib
from pathlib import Path

import pytest

from kopt.kernels.compile_result import Toolchain
from kopt.kernels.status import Status
from kopt.tools.cuda.cubin_cache import CompiledUnit, entry_lock, load_entry, store_entry

KEY = hashlib.sha256(b"key").hexdigest()
CUBIN = b"\x7fELF of a cubin"


def unit(cubin: bytes | None = CUBIN) -> CompiledUnit:
    return CompiledUnit(
        status=Status.COMPILE_ERROR if cubin is None else Status.PASSED,
        cubin_sha256=None if cubin is None else hashlib.sha256(cubin).hexdigest(),
        toolchain=Toolchain(compiler="nvcc", version="13.2.86", path="/nvcc", origin="pip"),
        compile_s=0.5,
        sandbox="plain",
    )


def test_a_stored_unit_comes_back_with_its_cubin_and_log(tmp_path: Path) -> None:
    store_entry(tmp_path, KEY, unit(), CUBIN, "the log")
    entry = load_entry(tmp_path, KEY)
    assert entry is not None
    assert entry.unit == unit()
    assert entry.cubin_path.read_bytes() == CUBIN
    assert entry.log_path.read_text("utf-8") == "the log"


def test_a_failed_compile_comes_back_without_a_cubin(tmp_path: Path) -> None:
    store_entry(tmp_path, KEY, unit(None), None, "errors")
    entry = load_entry(tmp_path, KEY)
    assert entry is not None
    assert entry.unit.status == Status.COMPILE_ERROR


def test_an_unknown_key_is_absent(tmp_path: Path) -> None:
    assert load_entry(tmp_path, KEY) is None


@pytest.mark.parametrize("name", ["candidate.cubin", "unit.json"])
@pytest.mark.parametrize("damage", ["flipped", "truncated", "removed", "emptied"])
def test_a_damaged_entry_is_absent_and_can_be_stored_again(
    tmp_path: Path, name: str, damage: str
) -> None:
    store_entry(tmp_path, KEY, unit(), CUBIN, "")
    path = tmp_path / KEY[:2] / KEY / name
    data = path.read_bytes()
    if damage == "removed":
        path.unlink()
    else:
        flipped = data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]
        path.write_bytes({"flipped": flipped, "truncated": data[:-1], "emptied": b""}[damage])
    assert load_entry(tmp_path, KEY) is None
    store_entry(tmp_path, KEY, unit(), CUBIN, "")
    assert load_entry(tmp_path, KEY) is not None


def test_storing_leaves_nothing_beside_the_entry(tmp_path: Path) -> None:
    store_entry(tmp_path, KEY, unit(), CUBIN, "")
    store_entry(tmp_path, KEY, unit(), CUBIN, "")
    with entry_lock(tmp_path, KEY, 1.0) as held:
        assert held
    assert [path.name for path in (tmp_path / KEY[:2]).iterdir()] == [KEY]
