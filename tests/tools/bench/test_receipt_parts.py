"""Receipts of one workload each, joined into that of their promotion."""

import hashlib
import json
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.kernels.receipt import Receipt, ReceiptCubin
from kopt.kernels.shipped_kernels import source_of
from kopt.tools.bench.receipt_file import receipt_text, with_digest
from kopt.tools.bench.receipt_parts import joined, parts_of, read_promotion
from kopt.tools.bench.verify_all import find_receipts
from support.receipts import evidence, sealed_receipts, write_winner

NAMES = ("b8xh64", "b16xh64")


def _sha256(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def receipts(at: str = "2026-01-01T00:00:00+00:00") -> tuple[Receipt, ...]:
    """Return those of two workloads, each with a cubin of its own."""
    return sealed_receipts(
        promoted_at=at,
        workloads=tuple(evidence(f"synthetic_{name}", name) for name in NAMES),
        cubins=tuple(
            ReceiptCubin(arch="sm_90a", defines={}, workloads=(name,), sha256=_sha256(name))
            for name in NAMES
        ),
    )


def test_a_receipt_covers_its_workload_alone_and_names_all() -> None:
    first, second = receipts()
    assert [one.workload for one in (*first.workloads, *second.workloads)] == list(NAMES)
    assert [cubin.workloads for cubin in second.cubins] == [("b16xh64",)]
    assert first.claimed == second.claimed == NAMES
    assert first.promotion == second.promotion != ""
    assert first.digest != second.digest


def test_joined_receipts_are_those_that_were_taken_apart() -> None:
    whole = joined(receipts()[::-1])
    assert [one.workload for one in whole.workloads] == list(NAMES)
    assert whole.digest == receipts()[0].promotion
    assert parts_of(whole) == receipts()


def test_some_receipts_of_a_promotion_do_not_have_its_digest() -> None:
    names = (*NAMES, "b32xh64")
    parts = sealed_receipts(
        workloads=tuple(evidence(f"synthetic_{name}", name) for name in names),
        cubins=tuple(
            ReceiptCubin(arch="sm_90a", defines={}, workloads=(name,), sha256=_sha256(name))
            for name in names
        ),
    )
    some = joined(parts[:2])
    assert some.digest not in ("", some.promotion, parts[0].promotion)
    assert joined(parts).digest == parts[0].promotion


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"domain": ("b8xh64", "b8xh64")}, "names a workload twice"),
        ({"problem": "merge_state"}, "no kernel id of merge_state"),
    ],
)
def test_a_resealed_receipt_with_impossible_names_is_refused(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    path, _ = write_winner(tmp_path, *receipts())
    path.write_text(receipt_text(with_digest(receipts()[0].model_copy(update=change))))
    with pytest.raises(ToolError, match=said):
        read_promotion(path)


@pytest.mark.parametrize("name", ["a\0.cu", "../a.cu", ".cu", "-a.cu", "a.txt"])
def test_a_source_file_is_a_plain_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / "b8xh64.sm_90a.receipt.json"
    path.write_text(json.dumps({"source_file": name}))
    assert source_of(path) == tmp_path / "b8xh64.sm_90a.cu"


@pytest.mark.parametrize("change", [{"sandbox": "plain"}, {"promoted_at": "2026-01-02"}])
def test_receipts_that_contradict_each_other_are_refused(change: dict[str, str]) -> None:
    first, second = receipts()
    with pytest.raises(ToolError, match="contradict each other"):
        joined([first, with_digest(second.model_copy(update=change))])


def test_a_promotion_is_all_receipts_beside_a_source_that_are_of_it(tmp_path: Path) -> None:
    first, _ = write_winner(tmp_path, *receipts())
    assert len(read_promotion(first).workloads) == 2
    write_winner(tmp_path, receipts("2026-02-02T00:00:00+00:00")[1])
    assert len(read_promotion(first).workloads) == 1


def test_receipts_of_one_promotion_are_found_as_one(tmp_path: Path) -> None:
    paths = write_winner(tmp_path, *receipts())
    (found,) = find_receipts([tmp_path, *paths])
    assert found.files == tuple(str(path) for path in sorted(paths))
    assert found.receipt is not None and len(found.receipt.workloads) == 2


def test_contradicting_receipts_are_one_entry_with_the_reason(tmp_path: Path) -> None:
    first, second = receipts()
    write_winner(tmp_path, first, with_digest(second.model_copy(update={"sandbox": "plain"})))
    (found,) = find_receipts([tmp_path])
    assert (found.receipt, len(found.files)) == (None, 2)
    assert "contradict each other" in (found.error or "")
