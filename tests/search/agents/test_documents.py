"""Documents of a run: found once, quoted as data, and never a reason to stop."""

from pathlib import Path

import pytest

from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.profile_result import Bottleneck, ProfileResult
from kopt.kernels.status import Provenance
from kopt.search.advice.retrieval_log import read_retrievals
from kopt.search.store.store import FILE_NAME
from support.agent_cases import ARCH, KERNEL, agent_tools
from support.built_docs import copy_docs

PROBLEM = find_kernel(KERNEL, None)[0]


@pytest.fixture
def home(tmp_path: Path, built_docs: Path) -> Path:
    """Return a home in which documents can be found."""
    return copy_docs(built_docs, tmp_path)


def limited_by(name: str, *families: str) -> ProfileResult:
    bottleneck = Bottleneck.model_validate(
        {
            "name": name,
            "statement": "",
            "facts": (),
            "families": families,
            "provenance": Provenance.ESTIMATED,
        }
    )
    return ProfileResult.model_construct(bottleneck=bottleneck)


def test_documents_of_a_run_are_the_same_each_time_and_logged(home: Path) -> None:
    reader = agent_tools(home).reader
    text = reader.documents(PROBLEM, ARCH)
    assert text == reader.documents(PROBLEM, ARCH)
    assert "silu" in text and "location: " in text
    assert len(read_retrievals(home / "runs" / "run-1")) == 4


def test_starting_kernel_is_not_quoted_twice(home: Path) -> None:
    text = agent_tools(home).reader.documents(PROBLEM, ARCH)
    assert "problems/silu_and_mul/reference.cu" not in text


def test_documents_of_a_round_are_about_the_bottleneck(home: Path) -> None:
    reader = agent_tools(home).reader
    assert "occupan" in reader.round_documents(
        limited_by("occupancy_limited", "launch_bounds"), ARCH
    )
    assert reader.round_documents(None, ARCH) == ""


def test_search_that_cannot_be_logged_leaves_the_run_without_documents(home: Path) -> None:
    reader = agent_tools(home).reader
    (home / "runs" / "run-1" / FILE_NAME).unlink()
    text = reader.documents(PROBLEM, ARCH)
    assert text.startswith("no documents: ") and str(home) not in text
