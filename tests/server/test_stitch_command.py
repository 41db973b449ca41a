"""`kopt stitch`: whose kernel each part gets, and which calls are refused."""

import shutil
from pathlib import Path

import pytest

from kopt.server.exits import ExitCode
from kopt.server.suite_search import suite_searches
from support.command_line import Kopt
from support.split_graphs import write_split


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
