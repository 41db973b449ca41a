"""Receipts on disk: what is read back, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from kopt.config.errors import ToolError
from kopt.kernels.receipt import Receipt
from kopt.tools.bench.receipt_file import read_receipt, receipt_text, seal
from support.receipts import sealed_receipt


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A whole receipt."""
    place = tmp_path / "b8xh64.sm_90a.receipt.json"
    place.write_text(receipt_text(sealed_receipt()), "utf-8")
    return place


def test_a_receipt_reads_back_as_it_was_written(path: Path) -> None:
    assert read_receipt(path) == sealed_receipt()


def test_other_spacing_and_order_of_the_same_content_are_the_same_receipt(path: Path) -> None:
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document, indent=2, sort_keys=True))
    assert read_receipt(path) == sealed_receipt()


@pytest.mark.parametrize(
    ("name", "value"),
    [("geometric_mean_speedup", 9.0), ("sandbox", "plain"), ("source", "// other"), ("more", 1)],
)
def test_an_edited_receipt_is_noticed(path: Path, name: str, value: object) -> None:
    document = json.loads(path.read_text())
    document[name] = value
    path.write_text(json.dumps(document))
    with pytest.raises(ToolError, match="damaged or edited after it was made"):
        read_receipt(path)


def test_an_edited_sample_is_noticed(path: Path) -> None:
    document = json.loads(path.read_text())
    document["workloads"][0]["measurements"][0]["log_ratios"][0] += 1e-12
    path.write_text(json.dumps(document))
    with pytest.raises(ToolError, match="damaged or edited"):
        read_receipt(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "damaged, or no receipt"),
        ("{", "damaged, or no receipt"),
        ("[]", "no JSON object"),
        ('{"schema": "kopt.receipt/2"}', "schema 'kopt.receipt/2'"),
        ('{"schema": "kopt.bench/1"}', "schema 'kopt.bench/1', not 'kopt.receipt/1'"),
        ("{}", "no receipt: it names no schema"),
        ("plain text", "damaged, or no receipt"),
        ('{"schema": NaN}', "NaN is no JSON number"),
        ("[" * 100_000, "damaged, or no receipt"),
    ],
    ids=["empty", "cut", "list", "newer", "bench", "none", "text", "nan", "deep"],
)
def test_what_is_no_receipt_is_said_to_be_none(tmp_path: Path, text: str, said: str) -> None:
    place = tmp_path / "some.json"
    place.write_text(text)
    with pytest.raises(ToolError, match=said) as caught:
        read_receipt(place)
    assert "`kopt bench FILE --promote` writes beside a winner" in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "some.json"
    place.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ToolError, match="not UTF-8"):
        read_receipt(place)


@pytest.mark.parametrize(("name", "said"), [("none.json", "no such file"), (".", "a folder")])
def test_a_path_without_a_file_is_said(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        read_receipt(tmp_path / name)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"speedup": 1.5}, "does not follow from its measurements"),
        ({"range": (1.0, 1.1)}, "does not follow from its measurements"),
        ({"workload": "b9xh9"}, "no cubin serves workload b9xh9"),
        ({"measurements": ()}, "has no measurement"),
    ],
    ids=["speedup", "range", "workload", "empty"],
)
def test_a_resealed_receipt_that_contradicts_itself_is_refused(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    receipt = sealed_receipt()
    changed = receipt.workloads[0].model_copy(update=change)
    with pytest.raises(ToolError, match=said):
        _reread(tmp_path, receipt.model_copy(update={"workloads": (changed,)}))


def test_a_speedup_must_follow_from_its_samples(tmp_path: Path) -> None:
    receipt = sealed_receipt()
    (entry,) = receipt.workloads
    better = tuple(one.model_copy(update={"speedup": 2.0}) for one in entry.measurements)
    changed = entry.model_copy(update={"measurements": better, "speedup": 2.0, "range": (2.0, 2.0)})
    with pytest.raises(ToolError, match="does not follow from its samples"):
        _reread(tmp_path, receipt.model_copy(update={"workloads": (changed,)}))


def test_a_receipt_must_hold_the_source_it_names(tmp_path: Path) -> None:
    receipt = sealed_receipt()
    with pytest.raises(ToolError, match="source has another id"):
        _reread(tmp_path, receipt.model_copy(update={"source": receipt.source + " "}))


def _reread(folder: Path, receipt: Receipt) -> Receipt:
    place = folder / "changed.json"
    place.write_text(receipt_text(seal(receipt)), "utf-8")
    return read_receipt(place)
