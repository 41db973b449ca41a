"""Receipts on disk: what is read back, and what is refused."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from kopt.config.errors import ToolError
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.receipt import Receipt
from kopt.kernels.shipped_kernels import source_of
from kopt.tools.bench.bound_files import DECISIVE_FILES
from kopt.tools.bench.receipt_file import read_receipt, receipt_text, with_digest
from support.bench_cases import CANDIDATE
from support.receipts import old_format, sealed_receipt, write_receipt, write_winner

PACKAGED = {
    "add_rmsnorm_fp4quant": "a7e18200de12",
    "add_rmsnorm_fp4quant_sf128x4": "56493e17935e",
    "attention_decode": "f155dfb3f483",
    "attention_prefill": "fcea0d64b08d",
    "fused_add_rmsnorm": "dff6a7f272a8",
    "fused_add_rmsnorm_fp8_block_quant": "80b1bfae10b7",
    "fused_add_rmsnorm_quant": "923f96dd59f5",
    "gemm_bf16": "ce51bc0d3626",
    "gemm_fp8_block_scaled": "d54034f8324b",
    "merge_state": "2a1c4b85951d",
    "nvfp4_quantize": "4de6e7f83e3d",
    "nvfp4_quantize_linear": "7d99a2ee23ab",
    "rope_quantize_fp8": "8f30f744fee0",
    "silu_and_mul": "ef12da36191f",
    "silu_mul_fp4quant": "a21d76f3889a",
    "silu_mul_fp4quant_linear": "2f9b5e5e46f1",
}
"""Beginnings of SHA-256 of problem.yaml and oracle.py, one behind the other."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A whole receipt."""
    return write_winner(tmp_path, sealed_receipt())[0]


@pytest.mark.parametrize(("name", "digest"), PACKAGED.items())
def test_receipts_of_users_stay_those_of_the_packaged_problems(name: str, digest: str) -> None:
    folder = load_problems()[name].folder
    content = b"".join((folder / file).read_bytes() for file in DECISIVE_FILES)
    assert hashlib.sha256(content).hexdigest().startswith(digest)


def test_a_receipt_reads_back_as_it_was_written(path: Path) -> None:
    assert read_receipt(path) == sealed_receipt()


def test_a_receipt_names_a_precision_that_is_not_ieee(tmp_path: Path) -> None:
    plain = sealed_receipt()
    assert "precision" not in json.loads(receipt_text(plain))
    rounded = with_digest(plain.model_copy(update={"precision": "tf32"}))
    assert json.loads(receipt_text(rounded))["precision"] == "tf32"
    assert rounded.digest != plain.digest


def test_other_spacing_and_order_of_the_same_content_are_the_same_receipt(path: Path) -> None:
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document, indent=2, sort_keys=True))
    assert read_receipt(path) == sealed_receipt()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("geometric_mean_speedup", 9.0),
        ("sandbox", "plain"),
        ("source_file", "other.cu"),
        ("more", 1),
    ],
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
        ('{"schema": "kopt.receipt/3"}', "schema 'kopt.receipt/3'"),
        ('{"schema": "kopt.bench/1"}', "schema 'kopt.bench/1', not 'kopt.receipt/2'"),
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
        ({"workload": "b9xh9"}, "b9xh9 is none of those that it claims"),
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


def test_a_source_that_changed_is_noticed(path: Path) -> None:
    source_of(path).write_text("// other\n")
    with pytest.raises(ToolError, match=r"synthetic\.sm_90a\.cu has changed since b8xh64"):
        read_receipt(path)


def test_a_source_that_is_missing_is_asked_for(path: Path) -> None:
    source_of(path).unlink()
    with pytest.raises(ToolError, match=r"is not beside it \(.*No such file.*copy both files"):
        read_receipt(path)


@pytest.mark.parametrize("name", ["../mine.cu", "/tmp/mine.cu", "", ".cu/"])
def test_a_source_lies_beside_its_receipt_and_nowhere_else(tmp_path: Path, name: str) -> None:
    receipt = sealed_receipt().model_copy(update={"source_file": name})
    place = tmp_path / "inner" / "b8xh64.sm_90a.receipt.json"
    write_receipt(place, sealed_receipt())
    (tmp_path / "mine.cu").write_text(receipt.source)
    place.write_text(receipt_text(with_digest(receipt)), "utf-8")
    with pytest.raises(ToolError, match="is not beside it"):
        read_receipt(place)


def test_a_receipt_of_format_1_holds_its_source(tmp_path: Path) -> None:
    place = tmp_path / "b8xh64.sm_90a.receipt.json"
    place.write_text(old_format(sealed_receipt()), "utf-8")
    receipt = read_receipt(place)
    assert (receipt.source, receipt.claimed) == (CANDIDATE.source, ("b8xh64",))


def test_a_receipt_of_format_1_must_hold_the_source_it_names(tmp_path: Path) -> None:
    place = tmp_path / "b8xh64.sm_90a.receipt.json"
    receipt = sealed_receipt()
    place.write_text(old_format(receipt.model_copy(update={"source": "// other"})), "utf-8")
    with pytest.raises(ToolError, match="source has another id"):
        read_receipt(place)


def _reread(folder: Path, receipt: Receipt) -> Receipt:
    return read_receipt(write_receipt(folder / "changed.json", with_digest(receipt)))
