"""The documents at the root stay true: the tree is whole, and the paths in them exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
NOT_OURS = {"build", "dist", "__pycache__"}
DOCUMENTS = ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))]


def _tree() -> dict[str, str]:
    """Return path and remark of each line of the tree in README.md."""
    block = README.split("## The tree")[1].split("```")[1]
    lines = [line.split(maxsplit=1) for line in block.splitlines() if line]
    return {path.rstrip("/"): remark for path, remark in lines}


def _visible(folder: Path) -> set[str]:
    return {
        path.name
        for path in folder.iterdir()
        if not path.name.startswith(".")
        and path.name not in NOT_OURS
        and not path.name.endswith(".egg-info")
    }


def test_every_path_of_the_tree_exists() -> None:
    assert [path for path in _tree() if not (ROOT / path).exists()] == []


def test_the_tree_names_everything_at_the_root() -> None:
    named = {path for path in _tree() if "/" not in path and not path.startswith(".")}
    assert named == _visible(ROOT) - {"README.md", "uv.lock"}


def test_the_tree_names_every_package_folder() -> None:
    packages = {
        path.parent.relative_to(ROOT).as_posix()
        for folder in ("config", "kernels", "tools", "search", "server")
        for path in (ROOT / folder).rglob("__init__.py")
    }
    assert packages - set(_tree()) == set()


def test_the_tree_names_every_document() -> None:
    assert set(_tree()["docs"].split(", ")) == {path.stem for path in ROOT.glob("docs/*.md")}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_named_in_a_document_exist(document: str) -> None:
    named = re.findall(
        r"\b((?:docs|config|kernels|tools|search|server|tests)/[\w./-]*\.\w+)",
        (ROOT / document).read_text("utf-8"),
    )
    assert [path for path in named if not (ROOT / path.rstrip(".")).exists()] == []


def test_make_targets_named_in_the_documents_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    texts = README + (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    targets = set(re.findall(r"\bmake ([a-z]+)\b(?=`|  )", texts))
    assert {"run", "test"} <= targets
    assert [target for target in targets if f"\n{target}:" not in makefile] == []


def test_every_status_is_documented_with_the_cli_agreeing() -> None:
    from kopt.kernels.status import Status
    from kopt.kernels.status_advice import ADVICE

    text = (ROOT / "docs" / "statuses.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == {s.value for s in Status}
    assert set(ADVICE) == set(Status)
