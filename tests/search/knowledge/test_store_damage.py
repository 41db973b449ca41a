"""What is damaged is told in one line with what to do, and nothing is lost."""

import random
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from kopt.config.errors import InfraError, KoptError, SetupError
from kopt.search.knowledge import ledger
from kopt.search.knowledge.ledger import FILE_NAME
from kopt.search.knowledge.store import BASE_NAME, KnowledgeStore
from support.knowledge_cases import ENTRY, random_samples, sample

pytestmark = pytest.mark.slow  # a store for each kind of damage


def _learned(folder: Path, samples: int = 40) -> bytes:
    """Return base.yaml of a base in `folder` that has learned something."""
    with KnowledgeStore(folder) as store:
        store.learn(random_samples(1, samples))
    return (folder / BASE_NAME).read_bytes()


@pytest.mark.parametrize("text", ["rubbish", "", "schema: kopt.knowledge/1\n"])
def test_a_damaged_base_yaml_is_rendered_again_with_one_line_and_kept(
    tmp_path: Path, text: str
) -> None:
    rendered = _learned(tmp_path)
    (tmp_path / BASE_NAME).write_text(text, "utf-8")
    said: list[str] = []
    with KnowledgeStore(tmp_path, said.append):
        pass
    assert (tmp_path / BASE_NAME).read_bytes() == rendered
    assert len(said) == 1 and "rendered again" in said[0] and "\n" not in said[0]
    (kept,) = tmp_path.glob("base.kept-*.yaml")
    assert kept.read_text("utf-8") == text


def test_an_edited_base_yaml_is_kept_aside_when_something_is_learned(tmp_path: Path) -> None:
    said: list[str] = []
    with KnowledgeStore(tmp_path, said.append) as store:
        store.path.write_bytes(store.path.read_bytes() + b"# mine\n")
        store.learn([sample(1)])
    (kept,) = tmp_path.glob("base.kept-*.yaml")
    assert kept.read_bytes().endswith(b"# mine\n")
    assert len(said) == 1


def test_a_folder_in_the_place_of_base_yaml_is_named(tmp_path: Path) -> None:
    (tmp_path / BASE_NAME).mkdir()
    with pytest.raises(SetupError, match=r"base\.yaml cannot be used: Is a directory"):
        KnowledgeStore(tmp_path)


def test_a_missing_or_older_base_yaml_is_rendered_without_a_word(tmp_path: Path) -> None:
    older = _learned(tmp_path, 10)
    rendered = _learned(tmp_path)
    said: list[str] = []
    for text in (older, None):
        (tmp_path / BASE_NAME).unlink()
        if text is not None:
            (tmp_path / BASE_NAME).write_bytes(text)
        with KnowledgeStore(tmp_path, said.append):
            pass
        assert (tmp_path / BASE_NAME).read_bytes() == rendered
    assert said == []


def _zero_head(data: bytes) -> bytes:
    return bytes(100) + data[100:]


def _zero_middle(data: bytes) -> bytes:
    return data[:4096] + bytes(len(data) - 8192) + data[-4096:]


def _halve(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _replace(data: bytes) -> bytes:
    return b"PK" * len(data)


def _read_all(folder: Path) -> None:
    with KnowledgeStore(folder) as store:
        store.samples()
        store.base(1)


@pytest.mark.parametrize("damage", [_zero_head, _zero_middle, _halve, _replace])
def test_a_damaged_ledger_is_told_with_what_to_do_and_left_as_it_is(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    rendered = _learned(tmp_path)
    damaged = damage((tmp_path / FILE_NAME).read_bytes())
    (tmp_path / FILE_NAME).write_bytes(damaged)
    with pytest.raises(SetupError, match=r"(?s)samples\.sqlite.*kopt kb import"):
        _read_all(tmp_path)
    assert (tmp_path / FILE_NAME).read_bytes() == damaged
    assert (tmp_path / BASE_NAME).read_bytes() == rendered


@pytest.mark.parametrize("seed", range(24))
def test_whatever_bits_flip_an_error_of_kopt_is_raised_or_none(tmp_path: Path, seed: int) -> None:
    _learned(tmp_path)
    data, draw = bytearray((tmp_path / FILE_NAME).read_bytes()), random.Random(seed)
    for _ in range((1, 10, 100, 300)[seed % 4]):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    (tmp_path / FILE_NAME).write_bytes(data)
    with suppress(KoptError), KnowledgeStore(tmp_path) as store:
        store.base()
        store.samples()
        store.learn(random_samples(2, 5))


def test_what_the_message_says_brings_the_knowledge_back(tmp_path: Path) -> None:
    with KnowledgeStore(tmp_path) as store:
        store.learn([sample(1), sample(2)])
        lost = store.base().entries[ENTRY].evidence["sm_90a"]
    (tmp_path / FILE_NAME).write_bytes(b"no database at all")
    (tmp_path / FILE_NAME).rename(tmp_path / "damaged.sqlite")
    (tmp_path / BASE_NAME).rename(tmp_path / "old.yaml")
    with KnowledgeStore(tmp_path) as store:
        store.import_((tmp_path / "old.yaml").read_text("utf-8"))
        assert [*store.base().entries[ENTRY].evidence["sm_90a"]] == [*lost]


def test_a_base_yaml_without_its_ledger_is_kept_aside(tmp_path: Path) -> None:
    rendered = _learned(tmp_path)
    (tmp_path / FILE_NAME).unlink()
    said: list[str] = []
    with KnowledgeStore(tmp_path, said.append):
        pass
    (kept,) = tmp_path.glob("base.kept-*.yaml")
    assert kept.read_bytes() == rendered
    assert len(said) == 1


def _execute(folder: Path, *statements: str) -> None:
    connection = sqlite3.connect(folder / FILE_NAME)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_row_that_is_no_sample_is_damage(tmp_path: Path) -> None:
    _learned(tmp_path)
    _execute(tmp_path, "UPDATE sample SET document = '{}' WHERE place = 3")
    with KnowledgeStore(tmp_path) as store, pytest.raises(SetupError, match="damaged row"):
        store.samples()


def test_a_damaged_snapshot_is_projected_again(tmp_path: Path) -> None:
    with KnowledgeStore(tmp_path) as store:
        store.learn(random_samples(1, 40))
        base = store.base()
    _execute(tmp_path, "UPDATE snapshot SET document = '{}'")
    with KnowledgeStore(tmp_path) as store:
        assert store.base() == base


def test_the_ledger_of_a_newer_kopt_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    _learned(tmp_path)
    _execute(tmp_path, f"PRAGMA user_version = {ledger.FORMAT + 1}")
    before = (tmp_path / FILE_NAME).read_bytes()
    with pytest.raises(SetupError, match=r"has format 2, this kopt reads up to 1: upgrade kopt"):
        KnowledgeStore(tmp_path)
    assert (tmp_path / FILE_NAME).read_bytes() == before


def test_the_database_of_another_program_is_refused(tmp_path: Path) -> None:
    _execute(tmp_path, "CREATE TABLE bookmark (url TEXT)")
    with pytest.raises(SetupError, match="no file of kopt's"):
        KnowledgeStore(tmp_path)


def test_a_ledger_that_another_process_keeps_busy_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "_BUSY_S", 0.0)
    _learned(tmp_path)
    other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(InfraError, match="was busy"):
        KnowledgeStore(tmp_path)
    other.close()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(SetupError, match="cannot create"):
        KnowledgeStore(tmp_path / "file" / "knowledge")
