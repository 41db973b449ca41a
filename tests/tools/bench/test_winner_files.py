"""Where a new winner's source lies, and what of an old one goes."""

from pathlib import Path

import pytest

from kopt.kernels.candidate import Candidate
from kopt.kernels.receipt import Receipt
from kopt.kernels.shipped_kernels import source_of
from kopt.tools.bench.receipt_file import receipt_text
from kopt.tools.bench.winner_files import place_winner, source_file, winners_lock
from support.receipts import sealed_receipts

SOURCE = Candidate("// new")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "synthetic"
    folder.mkdir()
    return folder / "b8xh64.sm_90a.receipt.json"


def _promoted(place: Path) -> Receipt:
    (receipt,) = sealed_receipts()
    place_winner(place, receipt, "replace")
    return receipt


def test_a_source_takes_a_longer_name_while_another_is_in_the_way(place: Path) -> None:
    folder = place.parent
    names: list[str] = []
    for _ in range(3):
        names.append(source_file(place, "synthetic", SOURCE))
        (folder / names[-1]).write_text("// another")
    ids = ("", f"-{SOURCE.id[:8]}", f"-{SOURCE.id}")
    assert names == [f"synthetic{one}.sm_90a.cu" for one in ids]


def test_a_file_that_no_receipt_names_stays(place: Path) -> None:
    own = place.with_name("b8xh64.sm_90a.cu")
    own.write_text("// written by hand")
    _promoted(place)
    assert own.read_text() == "// written by hand"


def test_an_old_source_that_was_edited_since_stays(place: Path) -> None:
    receipt = _promoted(place)
    edited = source_of(place)
    edited.write_text("// edited")
    place_winner(place, receipt.model_copy(update={"source_file": "other.sm_90a.cu"}), "replace")
    assert edited.read_text() == "// edited"
    assert place.read_text() != receipt_text(receipt)


def test_a_second_promotion_waits_for_the_first(place: Path) -> None:
    from kopt.config.locks import is_locked

    lock = place.parent.parent / ".promotion.lock"
    with winners_lock(place):
        assert is_locked(lock)
    assert not is_locked(lock)
