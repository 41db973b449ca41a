"""The code that is sent: complete, without what is not code, named by its content."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from kopt.tools.remote.code_bundle import bundled_path, code_bundle, code_stamp
from support.tiny_problem import write_tiny_problem


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a small tree in the form of kopt's."""
    for name in ("config", "kernels", "tools", "search", "server", "tests"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one.py").write_text(f"# {name}\n")
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "tools" / "__pycache__").mkdir()
    (tmp_path / "tools" / "__pycache__" / "one.pyc").write_text("compiled")
    (tmp_path / "tools" / "runtime.cpp").write_text("int main() {}\n")
    return tmp_path


def test_code_and_data_go_and_nothing_else(tree: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(code_bundle(tree).archive()), mode="r:gz") as files:
        names = files.getnames()
    assert names == [
        "kopt/__init__.py",
        *(f"kopt/{name}/one.py" for name in ("config", "kernels", "tools")),
        "kopt/tools/runtime.cpp",
        *(f"kopt/{name}/one.py" for name in ("search", "server")),
    ]


def test_other_content_has_another_name_and_the_same_the_same(tree: Path) -> None:
    before = code_bundle(tree)
    archive = before.archive()
    code_bundle.cache_clear()
    assert code_bundle(tree) == before
    assert code_bundle(tree).archive() == archive
    (tree / "tools" / "runtime.cpp").write_text("int main() { return 1; }\n")
    code_bundle.cache_clear()
    assert code_bundle(tree).digest != before.digest


@pytest.mark.parametrize("change", ["same size and time", "new", "gone", "moved", "nothing"])
def test_whatever_changes_in_the_code_changes_its_stamp(tree: Path, change: str) -> None:
    file = tree / "tools" / "runtime.cpp"
    before, seen = code_stamp(tree), file.stat()
    if change == "same size and time":
        file.write_text("int main() :)\n")
        os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        assert (file.stat().st_size, file.stat().st_mtime_ns) == (seen.st_size, seen.st_mtime_ns)
    elif change == "new":
        (tree / "search" / "deep" / "er").mkdir(parents=True)
        (tree / "search" / "deep" / "er" / "two.py").write_text("")
    elif change == "gone":
        file.unlink()
    elif change == "moved":
        file.rename(tree / "server" / "runtime.cpp")
    assert (code_stamp(tree) == before) is (change == "nothing")


def test_what_is_not_code_leaves_the_stamp(tree: Path) -> None:
    before = code_stamp(tree)
    (tree / "tools" / "__pycache__" / "two.pyc").write_text("compiled")
    (tree / "tests" / "two.py").write_text("")
    assert code_stamp(tree) == before


def test_a_problem_of_the_users_own_is_no_part_of_the_code(tmp_path: Path) -> None:
    import kopt

    packaged = Path(next(iter(kopt.__path__))) / "kernels" / "problems" / "silu_and_mul"
    assert bundled_path(packaged) == "kernels/problems/silu_and_mul"
    assert bundled_path(write_tiny_problem(tmp_path)) is None
