"""Candidates by address: what an address may reach, and for whom."""

from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.server.protocol.given_source import Reader
from kopt.server.protocol.serve_options import ServeOptions
from support.built_docs import copy_docs
from support.scripted_steps import KERNEL, Steps, candidate, reference

WINNER = "kopt://docs/kernels/problems/silu_and_mul/winners/silu_and_mul.sm_90a.cu"
ROOT = Path(__file__).parents[3]


def reader(home: Path, owner: str = "", without: tuple[str, ...] = ()) -> Reader:
    return Reader(ServeOptions(Settings(home=home, without_sources=without)), owner)


def test_a_shipped_winner_is_read_whole(tmp_path: Path) -> None:
    file = ROOT / WINNER.removeprefix("kopt://docs/")
    assert reader(tmp_path).text("", WINNER).strip() == file.read_text("utf-8").strip()


def test_what_a_study_hides_is_hidden_by_address_too(tmp_path: Path) -> None:
    hidden = reader(tmp_path, without=("winners",))
    for address in (WINNER, WINNER.replace("docs/kernels", "docs/winners:kernels")):
        with pytest.raises(ToolError, match="hidden from this process by KOPT_WITHOUT_SOURCES"):
            hidden.text("", address)


def test_a_candidate_of_a_run_is_read_by_its_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(tmp_path)
    steps.install(monkeypatch.setattr)
    mine = candidate(5.0, "mine")
    run = steps.take(mine, kernel=KERNEL, owner="token:1").run
    address = f"kopt://runs/{run}/candidates/"
    assert reader(tmp_path, "token:1").text("", f"{address}1") == mine.source
    assert reader(tmp_path).text("", f"{address}0") == reference()
    with pytest.raises(ToolError, match="no run matches"):
        reader(tmp_path, "token:2").text("", f"{address}1")
    with pytest.raises(ToolError, match="candidates 0 to 1"):
        reader(tmp_path).text("", f"{address}2")


@pytest.mark.parametrize(
    "address",
    [
        "kopt://docs/docs/problems.md",
        "kopt://jobs/job-20260101-000000-00000000/result",
        "kopt://runs/../../candidates/1",
        "kopt://",
    ],
)
def test_other_addresses_are_no_candidates(tmp_path: Path, address: str) -> None:
    with pytest.raises(ToolError, match="is no candidate's address"):
        reader(tmp_path).text("", address)


def test_no_file_outside_the_corpus_has_an_address(tmp_path: Path, built_docs: Path) -> None:
    home = copy_docs(built_docs, tmp_path / "home")
    outside = tmp_path / "mine.cu"
    outside.write_text("/* kopt: 1 */", "utf-8")
    for path in (str(outside), "../../../../etc/x.cu", "tests/x.cu"):
        with pytest.raises(ToolError, match="no document has the uid"):
            reader(home).text("", f"kopt://docs/{path}")


def test_both_a_text_and_an_address_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="exactly one of source"):
        reader(tmp_path).text("/* kopt: 1 */", WINNER)
