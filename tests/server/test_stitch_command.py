"""`kopt stitch`: whose kernel each part gets, and which calls are refused."""

import shutil
from pathlib import Path

import pytest

from kopt.search.store.winner import winner_path
from kopt.server.exits import ExitCode
from kopt.server.suite_search import suite_searches
from support.command_line import Ending, Kopt
from support.split_graphs import write_split
from support.told_run import told_run


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """Return a network in two parts."""
    return write_split(tmp_path / "parts")


def _origins(document: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {one["name"]: one["origin"] for one in document["parts"]}


def test_without_runs_each_part_has_its_first_kernel(
    kopt: Kopt, parts: Path, tmp_path: Path
) -> None:
    ending = kopt("stitch", parts, "-o", tmp_path / "net.cu", "--json")
    assert ending.code == ExitCode.PASSED
    assert _origins(ending.document) == {"net_layers_0": "reference", "net_head": "reference"}
    assert ending.document["kernels"] == ["net_w0", "net_w1"]
    assert (tmp_path / "net.cu").read_text("utf-8").startswith("/* kopt: 1\n")


def test_a_folder_of_kernels_is_taken_by_the_names_of_parts(
    kopt: Kopt, parts: Path, tmp_path: Path
) -> None:
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    shutil.copy(parts / "net_head" / "reference.cu", kernels / "head.cu")
    words = ("stitch", parts, "--winners", kernels, "-o", tmp_path / "net.cu", "--json")
    assert _origins(kopt(*words).document)["net_head"] == str(kernels)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--use", "tail=x.cu"], "'tail' is no part of net"),
        (["--use", "head"], "is not of the form PART=FILE.cu"),
        (["--use", "head=missing.cu"], "cannot read missing.cu"),
        (["--use", "head={parts}/net_layers_0/reference.cu"], "is no candidate for net_head: line"),
        (["--winners", "fastest"], "no such folder; allowed: run, winner, reference"),
        (["--winners", "{parts}"], "no <part>.cu lies in it"),
    ],
)
def test_what_cannot_be_stitched_is_named_and_nothing_is_written(
    words: list[str], said: str, kopt: Kopt, parts: Path, tmp_path: Path
) -> None:
    told = [word.format(parts=parts) for word in words]
    ending = kopt("stitch", parts, "-o", tmp_path / "net.cu", *told, "--json")
    assert ending.code == ExitCode.USAGE
    assert said in ending.document["message"]
    assert "\n" not in ending.document["message"]
    assert not (tmp_path / "net.cu").exists()


def _stitched_head(kopt: Kopt, parts: Path, file: Path, arch: str) -> Ending:
    words = ("--use", f"head={file}", "--arch", arch, "-o", parts / "net.cu")
    return kopt("stitch", parts, *words)


def test_a_file_for_another_architecture_is_refused_by_its_name(kopt: Kopt, parts: Path) -> None:
    file = parts / "head.sm_90a.cu"
    shutil.copy(parts / "net_head" / "reference.cu", file)
    refused = _stitched_head(kopt, parts, file, "sm_100a")
    assert refused.code == ExitCode.USAGE
    assert f"{file} is for sm_90a, and --arch is sm_100a" in refused.stderr
    assert "--arch sm_90a" in refused.stderr
    assert not (parts / "net.cu").exists()
    taken = _stitched_head(kopt, parts, file, "sm_90a")
    assert taken.code == ExitCode.PASSED
    assert "--arch sm_90a  # whether the whole is right" in taken.stdout


def test_receipts_beside_a_file_say_which_architectures_it_is_for(kopt: Kopt, parts: Path) -> None:
    file = parts / "mine.cu"
    shutil.copy(parts / "net_head" / "reference.cu", file)
    for arch in ("sm_90a", "sm_103a"):
        receipt = file.with_name(f"w1.{arch}.receipt.json")
        receipt.write_text(f'{{"source_file": "{file.name}"}}')
    refused = _stitched_head(kopt, parts, file, "sm_100a")
    assert refused.code == ExitCode.USAGE
    assert f"{file} is for sm_103a and sm_90a, and --arch is sm_100a" in refused.stderr
    assert _stitched_head(kopt, parts, file, "sm_103a").code == ExitCode.PASSED


def test_the_winner_of_a_run_is_for_the_architecture_of_its_run(
    kopt: Kopt, parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with told_run(tmp_path / "home", kernel="net_head_w1") as store:
        file = winner_path(store.folder)
    shutil.copy(parts / "net_head" / "reference.cu", file)
    monkeypatch.setenv("KOPT_HOME", str(tmp_path / "home"))
    refused = _stitched_head(kopt, parts, file, "sm_100a")
    assert f"{file} is for sm_90a, and --arch is sm_100a" in refused.stderr
    assert _stitched_head(kopt, parts, file, "sm_90a").code == ExitCode.PASSED


def test_a_whole_that_was_imported_again_asks_for_a_new_split(
    kopt: Kopt, parts: Path, tmp_path: Path
) -> None:
    graph = parts / "whole" / "net" / "graph.json"
    graph.write_text(graph.read_text("utf-8") + "\n", "utf-8")
    ending = kopt("stitch", parts, "-o", tmp_path / "net.cu", "--json")
    assert ending.code == ExitCode.USAGE
    assert "was changed after the split" in ending.document["message"]


def test_a_search_of_the_parts_divides_the_budget_by_weight(parts: Path) -> None:
    found = suite_searches(parts, "sim")
    assert [(one.kernel, one.share) for one in found] == [
        ("net_layers_0_w0", 0.75),
        ("net_head_w0", 0.25),
    ]
