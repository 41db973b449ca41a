"""The documents stay true: the tree is whole, paths and links lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
NOT_OURS = {"build", "dist", "__pycache__"}
DOCUMENTS = [
    *("README.md", "CONTRIBUTING.md", "AGENTS.md", "SECURITY.md"),
    *(f"docs/{p.name}" for p in sorted(ROOT.glob("docs/*.md"))),
]


def _tree() -> dict[str, str]:
    """Return path and remark of each line of the tree in docs/architecture.md."""
    block = ARCHITECTURE.split("## The tree")[1].split("```")[1]
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


def _text(document: str) -> str:
    return (ROOT / document).read_text("utf-8")


def test_every_path_of_the_tree_exists() -> None:
    assert [path for path in _tree() if not (ROOT / path).exists()] == []


def test_the_tree_names_everything_at_the_root() -> None:
    named = {path for path in _tree() if "/" not in path and not path.startswith(".")}
    assert named == _visible(ROOT) - {"README.md"}


def test_the_tree_names_every_package_folder() -> None:
    packages = {
        path.parent.relative_to(ROOT).as_posix()
        for folder in ("config", "kernels", "tools", "search", "server")
        for path in (ROOT / folder).rglob("__init__.py")
    }
    assert packages - set(_tree()) == set()


def test_the_index_names_every_document_once() -> None:
    listed = re.findall(r"^\| \[[^\]]*\]\(([\w-]+)\.md\)", _text("docs/index.md"), re.MULTILINE)
    pages = {path.stem for path in ROOT.glob("docs/*.md")} - {"index"}
    assert sorted(listed) == sorted(pages)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_between_documents_lead_to_files(document: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)", _text(document))
    folder = (ROOT / document).parent
    assert [link for link in links if not (folder / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_named_in_a_document_exist(document: str) -> None:
    named = re.findall(
        r"(?<!//)\b((?:docs|config|kernels|tools|search|server|tests)/[\w./-]*\.\w+)",
        _text(document),
    )
    assert [path for path in named if not (ROOT / path.rstrip(".")).exists()] == []


def test_make_targets_named_in_the_documents_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    texts = README + (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    targets = set(re.findall(r"\bmake ([a-z]+)\b(?=`|  )", texts))
    assert {"run", "test"} <= targets
    assert [target for target in targets if f"\n{target}:" not in makefile] == []


def test_every_status_is_documented_with_the_cli_agreeing() -> None:
    from kopt.kernels.status import ADVICE, Status

    text = (ROOT / "docs" / "statuses.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == {s.value for s in Status}
    assert set(ADVICE) == set(Status)
