"""The oracle cache: same data back, damage and races survived, size bounded."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.config.files import folder_size
from kopt.tools.check import oracle_parts
from kopt.tools.check.case_data import CaseData, CaseKey
from kopt.tools.check.oracle_cache import OracleCache, case_hash
from support.oracle_run import workload_of
from support.synthetic_check import synthetic_problem


@pytest.fixture
def key(tmp_path: Path) -> CaseKey:
    problem = synthetic_problem(tmp_path / "problem", layout="sf_128x4")
    return CaseKey(problem, problem.workloads[0], 1, "normal")


@pytest.fixture
def cache(tmp_path: Path) -> OracleCache:
    return OracleCache(tmp_path / "cache")


def _version(number: str, _name: str) -> str:
    return number


def _bytes(array: npt.NDArray[Any] | None) -> bytes | None:
    return None if array is None else array.tobytes()


def _assert_same(one: CaseData, other: CaseData) -> None:
    assert {name: (a.dtype, a.shape, a.tobytes()) for name, a in one.inputs.items()} == {
        name: (a.dtype, a.shape, a.tobytes()) for name, a in other.inputs.items()
    }
    for name, reference in one.references.items():
        loaded = other.references[name]
        for part in ("exact", "bits", "written", "offsets", "slack", "unit"):
            assert _bytes(getattr(reference, part)) == _bytes(getattr(loaded, part)), part
        for part in ("number_format", "shape", "rows", "scaled_by", "bit_exact"):
            assert getattr(reference, part) == getattr(loaded, part), part
        assert (reference.noise is None) == (loaded.noise is None)


def _entries(cache: OracleCache) -> list[Path]:
    return sorted(path for path in cache.folder.iterdir() if not path.name.startswith("."))


def test_the_second_load_comes_from_disk_and_is_the_same(
    key: CaseKey, cache: OracleCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = cache.load(key)

    def refuse(key: CaseKey) -> CaseData:
        raise AssertionError("the oracle ran again")

    monkeypatch.setattr("kopt.tools.check.oracle_cache.make_case_data", refuse)
    _assert_same(made, cache.load(key))


def test_seed_regime_and_oracle_have_entries_of_their_own(key: CaseKey) -> None:
    keys = {case_hash(key), case_hash(replace(key, seed=2)), case_hash(replace(key, regime="tiny"))}
    oracle = key.problem.folder / "oracle.py"
    oracle.write_text(oracle.read_text() + "\n# changed\n")
    keys.add(case_hash(key))
    assert len(keys) == 4


def test_whatever_an_oracle_may_read_makes_another_entry(
    key: CaseKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, found = key.problem.folder, {case_hash(key)}
    (folder / "model").mkdir()
    for path in (folder / "weights.bin", folder / "model" / "layers.json"):
        for content in (b"one", b"another"):
            path.write_bytes(content)
            os.utime(path, ns=(len(found), len(found)))
            found.add(case_hash(key))
    (folder / "module.py").write_text("import torch")
    for number in ("2.11", "2.13"):
        monkeypatch.setattr(oracle_parts, "_version", partial(_version, number))
        found.add(case_hash(key))
    assert len(found) == 7


def test_kernels_beside_an_oracle_leave_its_entries(key: CaseKey) -> None:
    before = case_hash(key)
    (key.problem.folder / "mine.cu").write_text("// a candidate")
    (key.problem.folder / "winners").mkdir()
    (key.problem.folder / "winners" / "b4xh64.sm_90a.receipt.json").write_text("{}")
    assert case_hash(key) == before


def test_modules_of_kopt_that_an_oracle_imports_count(tmp_path: Path) -> None:
    (tmp_path / "oracle.py").write_text("from kopt.tools.check.judge import judge\n")
    assert "judge.py" in set(oracle_parts.oracle_parts(tmp_path))


def test_an_entry_says_nothing_of_the_seed(key: CaseKey, cache: OracleCache) -> None:
    cache.load(replace(key, seed=918273645))
    (entry,) = _entries(cache)
    assert "918273645" not in entry.name
    assert b"918273645" not in (entry / "entry.json").read_bytes()


@pytest.mark.parametrize(
    "damage", ["cut", "zeroed", "removed", "bad json", "flipped json", "header", "no entry.json"]
)
def test_a_damaged_entry_is_made_again(key: CaseKey, cache: OracleCache, damage: str) -> None:
    made = cache.load(key)
    (entry,) = _entries(cache)
    array = entry / "output-y_bf16-exact.npy"
    if damage == "cut":
        os.truncate(array, array.stat().st_size - 8)
    elif damage == "zeroed":
        with array.open("r+b") as file:
            file.seek(array.stat().st_size - 512)
            file.write(bytes(512))
    elif damage == "removed":
        array.unlink()
    elif damage == "header":
        data = array.read_bytes()
        array.write_bytes(data.replace(b"'fortran_order': False", b"'fortran_order': {alse", 1))
    elif damage == "flipped json":
        text = (entry / "entry.json").read_text()
        (entry / "entry.json").write_text(text.replace('"rows": ', '"rows": 1', 1))
    elif damage == "bad json":
        (entry / "entry.json").write_text("{")
    else:
        (entry / "entry.json").unlink()
    _assert_same(made, cache.load(key))
    _assert_same(made, cache.load(key))
    assert len(_entries(cache)) == 1


def test_a_place_taken_by_another_process_is_left_to_it(
    key: CaseKey, cache: OracleCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = cache.load(key)
    (entry,) = _entries(cache)
    stamp = (entry / "entry.json").stat().st_ino

    def miss(place: Path) -> None:
        del place

    monkeypatch.setattr("kopt.tools.check.oracle_cache._read", miss)
    _assert_same(made, cache.load(key))
    assert _entries(cache) == [entry]
    assert (entry / "entry.json").stat().st_ino == stamp
    assert len(list(cache.folder.iterdir())) == 1


def test_the_entry_not_used_for_longest_goes_first(key: CaseKey, cache: OracleCache) -> None:
    small = OracleCache(cache.folder, limit_bytes=1)
    first, second = case_hash(key), case_hash(replace(key, seed=2))
    cache.load(key)
    cache.load(replace(key, seed=2))
    for age, name in enumerate((second, first)):
        os.utime(cache.folder / name, ns=(age, age))
    size = sum(file.stat().st_size for file in (cache.folder / first).iterdir())
    room = 2 * size + size // 2  # an entry's checksums have more digits or fewer
    replace(small, limit_bytes=room).load(replace(key, seed=3))
    assert {entry.name for entry in _entries(cache)} == {first, case_hash(replace(key, seed=3))}


def test_cache_is_never_larger_than_its_limit(key: CaseKey, cache: OracleCache) -> None:
    """After a write too: what was just written counts."""
    cache.load(key)
    size = sum(file.stat().st_size for file in _entries(cache)[0].iterdir())
    small = OracleCache(cache.folder, limit_bytes=2 * size)
    for seed in range(2, 6):
        small.load(replace(key, seed=seed))
        assert folder_size(cache.folder)[0] <= 2 * size
    assert (cache.folder / case_hash(replace(key, seed=5))).exists()


def test_a_case_larger_than_the_cache_is_not_written_and_leaves_the_others(
    key: CaseKey, cache: OracleCache
) -> None:
    cache.load(key)
    other = replace(key, workload=workload_of(key.problem, {"B": 64, "H": 256}))
    size = sum(file.stat().st_size for file in _entries(cache)[0].iterdir())
    data = replace(cache, limit_bytes=2 * size).load(other)
    assert data.inputs["x"].shape == (64, 256)
    assert [entry.name for entry in _entries(cache)] == [case_hash(key)]


def test_remains_of_a_dead_writer_are_removed(key: CaseKey, cache: OracleCache) -> None:
    cache.load(key)
    remains = cache.folder / ".new-4194304999-abc"  # above the largest process id of Linux
    remains.mkdir()
    (remains / "x.npy").write_bytes(bytes(100))
    OracleCache(cache.folder, limit_bytes=50).load(replace(key, seed=2))
    assert not remains.exists()


def test_evicted_data_stays_readable_for_who_has_it(key: CaseKey, cache: OracleCache) -> None:
    cache.load(key)
    mapped = cache.load(key)
    OracleCache(cache.folder, limit_bytes=0).load(replace(key, seed=2))
    assert not (cache.folder / case_hash(key)).exists()
    assert np.isfinite(np.asarray(mapped.references["y_bf16"].exact)).all()


def test_a_folder_that_cannot_be_written_costs_the_reuse_only(
    key: CaseKey, cache: OracleCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full_disk)
    assert cache.load(key).inputs["x"].shape == (8, 64)
    assert list(cache.folder.iterdir()) == []
