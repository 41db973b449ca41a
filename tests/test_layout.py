"""Guards of the tree: packaging tables, import direction, file length. Imports nothing of kopt."""

import ast
import fnmatch
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ("config", "kernels", "tools", "search", "server")
FLOORS = {
    "tools": (
        *("sandbox", "cuda", "devices", "sim", "gpu", "gpu/worker", "remote", "resident", "pool"),
        *("estimate", "profiling", "sanitize", "check", "bench", "calibration"),
        *("pytorch", "export", "docs"),
        *("facts", "selftest", "review", "suite", "imports"),
    ),
    "search": (
        *("records", "storage", "selection"),
        *("knowledge", "knowledge/policy", "knowledge/states"),
        *("store", "models", "evaluation", "advice", "agents"),
        *("rounds", "runs", "forecast", "reports", "step", "study"),
    ),
}
"""Folders of a layer from the ground up: each imports only itself and those before it. One that is
not listed belongs to the one that it lies in. Modules that lie in the layer's own folder are its
face: they import all floors, and no floor imports them."""
MAX_LINES = 300
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
SETUPTOOLS = PYPROJECT["tool"]["setuptools"]
PROBLEMS = (
    ROOT / "kernels" / "problems",
    ROOT / "tools" / "bench" / "device_copy",
    ROOT / "tools" / "selftest" / "samples",
)
"""Data, loaded by path: no packages."""


def _files_below(folder: Path) -> list[Path]:
    found: list[Path] = []
    for root, folders, files in os.walk(folder):
        # What has a dot is nobody's source: an environment alone has fifty thousand files.
        folders[:] = [one for one in folders if one != "__pycache__" and not one.startswith(".")]
        found += [Path(root, one) for one in files]
    return sorted(found)


ENTERS_FROM_OUTSIDE = ROOT / "tools" / "remote" / "bootstrap.py"
"""Runs on another machine before kopt is there, as the installed command runs on this one."""
BEFORE_SETTINGS = ROOT / "server" / "pool" / "seat.py"
"""Likewise, and nobody else could tell it where kopt's code is to be kept."""
LAYER_FILES = [path for layer in LAYERS for path in _files_below(ROOT / layer)]
MODULES = [p for p in LAYER_FILES if p.suffix == ".py" and not any(map(p.is_relative_to, PROBLEMS))]


def _dotted(folder: Path) -> str:
    return ".".join(("kopt", *folder.relative_to(ROOT).parts))


def _matches(path: str, pattern: str) -> bool:
    """Glob as setuptools reads it: `*` stays in its folder, `**` spans any number of folders."""
    names, globs = PurePosixPath(path).parts, PurePosixPath(pattern).parts

    def match(name_at: int, glob_at: int) -> bool:
        if glob_at == len(globs):
            return name_at == len(names)
        if globs[glob_at] == "**":
            return any(match(at, glob_at + 1) for at in range(name_at, len(names) + 1))
        fits = name_at < len(names) and fnmatch.fnmatchcase(names[name_at], globs[glob_at])
        return fits and match(name_at + 1, glob_at + 1)

    return match(0, 0)


def _data_patterns() -> Iterator[tuple[Path, str]]:
    for package, patterns in SETUPTOOLS["package-data"].items():
        for pattern in patterns:
            yield ROOT.joinpath(*package.split(".")[1:]), pattern


@dataclass(frozen=True)
class _Module:
    imports: tuple[ast.Import | ast.ImportFrom, ...]
    classes: tuple[str, ...]


@cache
def _module(path: Path) -> _Module:
    tree = ast.parse(path.read_text("utf-8"))
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return _Module(tuple(found), tuple(n.name for n in tree.body if isinstance(n, ast.ClassDef)))


def _imported_names(path: Path) -> Iterator[str]:
    for node in _module(path).imports:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _imported_modules(path: Path) -> Iterator[Path]:
    """Yield what a module imports of kopt: files without their ending, relative imports too."""
    for node in _module(path).imports:
        if not isinstance(node, ast.ImportFrom):
            continue
        parts = (node.module or "").split(".")
        if node.level:
            folder = path.parents[node.level - 1].joinpath(*filter(None, parts))
        elif parts[0] == "kopt":
            folder = ROOT.joinpath(*parts[1:])
        else:
            continue
        yield from (folder / one.name if folder.is_dir() else folder for one in node.names)


def _floor(module: Path, layer: str) -> int:
    """Return the floor of a module by its folder; that of the face is the highest."""
    floors = FLOORS[layer]
    folder = module.parent.relative_to(ROOT / layer)
    names = [one.as_posix() for one in (folder, *folder.parents)]
    return next((floors.index(name) for name in names if name in floors), len(floors))


def test_package_list_names_every_folder_with_modules() -> None:
    found = {"kopt"} | {_dotted(path.parent) for path in MODULES}
    assert sorted(SETUPTOOLS["packages"]) == sorted(found)


def test_every_package_has_its_own_init() -> None:
    folders = {path.parent for path in MODULES}
    assert [f for f in sorted(folders) if not (f / "__init__.py").is_file()] == []


def test_package_data_covers_every_other_file() -> None:
    uncovered = [
        str(path.relative_to(ROOT))
        for path in LAYER_FILES
        if path not in MODULES
        and not any(
            path.is_relative_to(folder) and _matches(path.relative_to(folder).as_posix(), pattern)
            for folder, pattern in _data_patterns()
        )
    ]
    assert uncovered == []


def test_package_data_covers_the_manual() -> None:
    patterns = SETUPTOOLS["package-data"]["kopt"]
    pages = [path.relative_to(ROOT).as_posix() for path in _files_below(ROOT / "docs")]
    assert [page for page in pages if not any(_matches(page, one) for one in patterns)] == []


@pytest.mark.parametrize(("folder", "pattern"), list(_data_patterns()), ids=str)
def test_every_data_pattern_matches_a_file(folder: Path, pattern: str) -> None:
    names = [path.relative_to(folder).as_posix() for path in _files_below(folder)]
    assert any(_matches(name, pattern) for name in names)


def test_modules_import_only_their_own_folder_and_those_to_its_left() -> None:
    wrong: list[str] = []
    for path in MODULES:
        above = LAYERS[LAYERS.index(path.relative_to(ROOT).parts[0]) + 1 :]
        for name in _imported_names(path):
            parts = name.split(".")
            if parts[0] == "kopt" and len(parts) > 1 and parts[1] in above:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


@pytest.mark.parametrize("layer", FLOORS)
def test_every_floor_of_a_layer_is_listed(layer: str) -> None:
    folders = {path.parent for path in MODULES if path.is_relative_to(ROOT / layer)}
    assert {ROOT / layer / floor for floor in FLOORS[layer]} <= folders
    own = [path for path in folders if path.parent == ROOT / layer]
    assert [path.name for path in own if path.name not in FLOORS[layer]] == []


@pytest.mark.parametrize("layer", FLOORS)
def test_floors_import_only_floors_below_them(layer: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {module.relative_to(ROOT)}"
        for path in MODULES
        if path.is_relative_to(ROOT / layer)
        for module in _imported_modules(path)
        if module.is_relative_to(ROOT / layer) and _floor(module, layer) > _floor(path, layer)
    ]
    assert wrong == []


def test_no_module_of_kopt_is_imported_by_name_below_server() -> None:
    """`importlib.import_module("kopt.server")` would slip past the import direction.

    Libraries without types are imported that way, each by a name that stands in the source.
    """
    wrong: list[str] = []
    for path in MODULES:
        if path.relative_to(ROOT).parts[0] == "server" or path == ENTERS_FROM_OUTSIDE:
            continue
        text = path.read_text("utf-8")
        named = re.findall(r"""\bimport_module\(["'](?!kopt)[\w.]+["']\)""", text)
        if text.count("import_module") != len(named):
            wrong.append(str(path.relative_to(ROOT)))
    assert wrong == []


def test_only_server_imports_mcp() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for path in MODULES
        if path.relative_to(ROOT).parts[0] != "server"
        and any(name.split(".")[0] == "mcp" for name in _imported_names(path))
    ]
    assert wrong == []


def test_only_settings_reads_the_environment() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for path in MODULES
        if path not in (ROOT / "config" / "settings.py", BEFORE_SETTINGS)
        and any(word in path.read_text("utf-8") for word in ("os.environ", "os.getenv"))
    ]
    assert wrong == []


def test_public_class_name_is_used_once() -> None:
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for name in _module(path).classes:
            places.setdefault(name, []).append(str(path.relative_to(ROOT)))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert {name: found for name, found in twice.items() if not name.startswith("_")} == {}


def _python_files() -> list[Path]:
    roots = [*(ROOT / layer for layer in LAYERS), ROOT / "tests", ROOT / "benchmarks"]
    below = [path for folder in roots for path in _files_below(folder)]
    return [path for path in (*below, *sorted(ROOT.glob("*.py"))) if path.suffix == ".py"]


def test_no_python_file_is_longer_than_300_lines() -> None:
    lengths = {p.relative_to(ROOT): len(p.read_text("utf-8").splitlines()) for p in _python_files()}
    assert {path: lines for path, lines in lengths.items() if lines > MAX_LINES} == {}


def test_no_init_stands_below_tests() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_folders_layers_and_links_agree() -> None:
    with_modules = {
        path.parent.name
        for path in ROOT.glob("*/__init__.py")
        if not path.parent.name.startswith(".")
    }
    links = {link.name: link.readlink() for link in (ROOT / ".typing" / "kopt").iterdir()}
    assert with_modules == set(LAYERS)
    assert links == {name: Path("../..") / name for name in (*LAYERS, "__init__.py", "__main__.py")}
