"""What a receipt rests on, on a machine that made it and on one that did not."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.receipt import Receipt
from kopt.tools.bench.receipt_file import read_receipt, with_digest
from kopt.tools.bench.receipt_parts import joined
from kopt.tools.bench.receipt_seal import note_reproduced, sealed, standing_of
from support.receipts import evidence, sealed_receipt, sealed_receipts, write_receipt


@pytest.fixture
def other(settings: Settings, tmp_path: Path) -> Settings:
    """Another machine."""
    return replace(settings, home=tmp_path / "other")


def _reread(folder: Path, receipt: Receipt) -> Receipt:
    return read_receipt(write_receipt(folder / "b8xh64.sm_90a.receipt.json", receipt))


def test_a_receipt_of_this_machine_is_known_again(tmp_path: Path, settings: Settings) -> None:
    receipt = sealed(sealed_receipt(), settings)
    again = _reread(tmp_path, receipt)
    assert again == receipt and again.digest == sealed_receipt().digest
    assert standing_of((again,), settings) == "sealed"
    key = settings.home / "secrets" / "receipt_seal"
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.read_bytes().hex() not in receipt.model_dump_json()


def test_a_receipt_without_a_seal_or_of_another_machine_is_a_claim(
    tmp_path: Path, settings: Settings, other: Settings
) -> None:
    assert standing_of((sealed_receipt(),), settings) == "claimed"
    theirs = _reread(tmp_path, sealed(sealed_receipt(), other))
    assert standing_of((theirs,), settings) == "claimed"
    sealed(sealed_receipt(), settings)
    assert standing_of((theirs,), settings) == "claimed"


def test_an_edited_receipt_with_the_seal_of_the_true_one_was_tampered_with(
    tmp_path: Path, settings: Settings
) -> None:
    receipt = sealed(sealed_receipt(), settings)
    forged = with_digest(receipt.model_copy(update={"sandbox": "plain"}))
    with pytest.raises(ToolError, match="was tampered with"):
        standing_of((_reread(tmp_path, forged),), settings)


def test_a_receipt_without_its_seal_is_a_claim_again(tmp_path: Path, settings: Settings) -> None:
    path = write_receipt(
        tmp_path / "b8xh64.sm_90a.receipt.json", sealed(sealed_receipt(), settings)
    )
    document = json.loads(path.read_text())
    del document["seal"]
    path.write_text(json.dumps(document))
    assert standing_of((read_receipt(path),), settings) == "claimed"


def test_what_was_reproduced_here_is_no_mere_claim(settings: Settings, other: Settings) -> None:
    receipt = sealed_receipt()
    note_reproduced((receipt,), settings)
    assert standing_of((receipt,), settings) == "reproduced"
    assert standing_of((receipt,), other) == "claimed"
    (settings.home / "reproduced" / receipt.digest).write_text("0" * 64)
    assert standing_of((receipt,), settings) == "claimed"


def test_a_promotion_rests_on_the_weakest_of_its_receipts(settings: Settings) -> None:
    names = ("b8xh64", "b16xh64")
    first, second = sealed_receipts(
        workloads=tuple(evidence(f"synthetic_{name}", name) for name in names)
    )
    mine = [sealed(one, settings) for one in (first, second)]
    assert standing_of(joined(mine).read, settings) == "sealed"
    assert standing_of(joined([mine[0], second]).read, settings) == "claimed"
    note_reproduced((second,), settings)
    assert standing_of(joined([mine[0], second]).read, settings) == "reproduced"


@pytest.mark.parametrize("letter", ["\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\u200b", "\n"])
@pytest.mark.parametrize("field", ["source_name", "kopt_version", "sandbox"])
def test_a_receipt_with_unseen_characters_is_refused(
    tmp_path: Path, letter: str, field: str
) -> None:
    forged = sealed_receipt().model_copy(update={field: f"mine{letter}[2J.cu"})
    with pytest.raises(ToolError, match=f"{field} has control characters") as caught:
        _reread(tmp_path, with_digest(forged))
    assert letter not in str(caught.value)


def test_the_name_of_a_field_is_told_without_its_unseen_characters(tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    path.write_text(json.dumps({"schema": "kopt.receipt/2", "\x1b[2Jmore": "x"}))
    with pytest.raises(ToolError, match="has control characters") as caught:
        read_receipt(path)
    assert "\x1b" not in str(caught.value)
