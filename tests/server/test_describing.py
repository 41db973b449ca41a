"""`kopt list` and `kopt show`: what they say about the packaged and the user's own problems."""

import shutil
from pathlib import Path

import pytest

from kopt.kernels.problem_loader import load_problems
from kopt.tools.bench.receipt_file import read_receipt
from support.command_line import Kopt

ID = "add_rmsnorm_fp4quant_b128xh2048"
PACKAGED = Path(__file__).parents[2] / "kernels" / "problems"


def test_list_shows_every_kernel_id(kopt: Kopt) -> None:
    ending = kopt("list")
    ids = [kernel for problem in load_problems().values() for kernel in problem.kernel_ids]
    assert ending.code == 0
    assert [kernel for kernel in ids if f"{kernel} " not in ending.stdout] == []


def test_list_as_json_has_bytes_and_floor(kopt: Kopt) -> None:
    document = kopt("list", "--json").document
    assert (document["schema"], document["status"]) == ("kopt.list/1", "passed")
    kernel = next(entry for entry in document["kernels"] if entry["kernel"] == ID)
    assert kernel["total_bytes"] > 0
    assert kernel["memory_floor_us"] > 0.0


def test_floor_of_a_product_of_matrices_is_that_of_tensor_cores(kopt: Kopt) -> None:
    (row,) = kopt("list", "gemm_bf16_m8192", "--arch", "H100", "--json").document["kernels"]
    assert row["memory_floor_us"] < 200
    # 2 * 8192^3 operations at 132 SMs * 4,096 a clock * 1.98 GHz
    assert row["floor_us"] == pytest.approx(2 * 8192**3 / (132 * 4096 * 1.98e3), rel=0.01)


def test_library_with_several_paths_is_one_word_in_the_list(kopt: Kopt) -> None:
    assert "torch, flashinfer (3 paths)" in kopt("list", "gemm_bf16_m8192").stdout


def test_list_for_an_architecture_keeps_those_with_a_baseline_there(kopt: Kopt) -> None:
    document = kopt("list", "--arch", "sm_90a", "--json").document
    on_hopper = {entry["kernel"] for entry in document["kernels"]}
    assert "silu_and_mul_b8xh14336" in on_hopper
    assert ID not in on_hopper


def test_own_problems_are_listed_beside_the_packaged_ones(kopt: Kopt, tmp_path: Path) -> None:
    own = tmp_path / "my_silu"
    shutil.copytree(PACKAGED / "silu_and_mul", own)
    file = own / "problem.yaml"
    file.write_text(file.read_text("utf-8").replace("name: silu_and_mul", "name: my_silu", 1))
    document = kopt("list", "--problems", tmp_path, "--json").document
    ids = {entry["kernel"] for entry in document["kernels"]}
    assert {"my_silu_b8xh14336", "silu_and_mul_b8xh14336"} <= ids


@pytest.mark.parametrize(
    "said",
    [
        "global_scale",
        "128 x 1024",
        "flop per byte",
        "B200",
        "H100",
        "Tolerance nvfp4",
        "/* kopt: 1",
    ],
)
def test_show_says_everything_that_an_author_needs(kopt: Kopt, said: str) -> None:
    ending = kopt("show", ID)
    assert ending.code == 0
    assert said in ending.stdout


def test_show_names_the_complete_kernel_and_it_exists(kopt: Kopt) -> None:
    document = kopt("show", ID, "--json").document
    assert document["kernel"] == ID
    assert Path(document["reference"]).is_file()


def test_skeleton_alone_is_what_the_document_has(kopt: Kopt) -> None:
    ending = kopt("show", ID, "--skeleton")
    assert ending.stdout == kopt("show", ID, "--json").document["skeleton"]


def test_example_alone_is_a_file_that_can_be_compiled_as_it_is(kopt: Kopt) -> None:
    ending = kopt("show", ID, "--example")
    assert ending.stdout.startswith("/* kopt: 1\n")
    assert ending.stdout == kopt("show", ID, "--json").document["example"]


def test_piped_text_has_no_escape_codes_and_no_trailing_blanks(kopt: Kopt) -> None:
    lines = kopt("show", ID).stdout.splitlines()
    assert not any("\x1b" in line for line in lines)
    assert [line for line in lines if line != line.rstrip()] == []


UNPROVEN = "nvfp4_quantize_m128xk14336"


def test_unproven_kernels_are_listed_and_shown_as_what_they_are(kopt: Kopt) -> None:
    listed = {one["kernel"]: one["shipped"] for one in kopt("list", "--json").document["kernels"]}
    assert "unproven for sm_100a" in listed[UNPROVEN]
    shown = kopt("show", UNPROVEN)
    assert "unproven for sm_100a: " in shown.stdout
    assert "never run on that GPU" in shown.stdout
    (entry,) = (
        one
        for one in kopt("show", UNPROVEN, "--json").document["shipped"]
        if one["standing"] == "unproven"
    )
    assert Path(entry["source"]).read_text("utf-8").startswith("/* kopt: 1")


def test_winners_are_listed_and_shown(kopt: Kopt, tmp_path: Path) -> None:
    own = tmp_path / "my_silu"
    shutil.copytree(PACKAGED / "silu_and_mul", own)
    file = own / "problem.yaml"
    file.write_text(file.read_text("utf-8").replace("name: silu_and_mul", "name: my_silu", 1))
    (own / "winners").mkdir(exist_ok=True)
    (own / "winners" / "b8xh14336.sm_80.cu").write_text("/* kopt: 1 */")
    document = kopt("list", "--problems", tmp_path, "--json").document
    listed = {one["kernel"]: one["shipped"] for one in document["kernels"]}
    assert "winner for sm_80" in listed["my_silu_b8xh14336"]
    assert "winner for sm_80" not in listed["my_silu_b128xh14336"]
    shown = kopt("show", "my_silu_b8xh14336", "--problems", tmp_path).stdout
    assert "winner for sm_80: " in shown
    assert "  without proof: cannot read " in shown


def test_a_winner_is_shown_with_the_speedup_of_its_receipt(kopt: Kopt) -> None:
    winner = PACKAGED / "silu_and_mul" / "winners" / "b128xh14336.sm_90a.receipt.json"
    receipt = read_receipt(winner)
    (evidence,) = receipt.workloads
    shown = kopt("show", "silu_and_mul_b128xh14336").stdout
    assert f"  {evidence.speedup:.3f}x flashinfer (PDL on) (" in shown
    assert f"measured on {receipt.device.name}" in shown
    assert "its receipt, which lies beside it, says faster" in shown


def test_a_process_that_must_not_see_winners_lists_and_shows_none(
    kopt: Kopt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPT_WITHOUT_SOURCES", "winners")
    assert {str(one["shipped"]) for one in kopt("list", "--json").document["kernels"]} == {"[]"}
    assert "unproven" not in kopt("list").stdout + kopt("show", UNPROVEN).stdout
    assert kopt("show", UNPROVEN, "--json").document["shipped"] == []
