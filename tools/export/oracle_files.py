"""kopt's oracle and gates as files of an export's test: unchanged but for their imports.

A copy of what judged the winner, instead of a second comparison beside it: what passes there passes
here, with fresh inputs of any seed. Everything that the oracle and the gates import of kopt comes
along, in the same folders below `kopt_oracle`.
"""

import ast
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import PurePosixPath

from .subject import Subject

PACKAGE = "kopt_oracle"
_ROOTS = ("tools/check/judge.py", "tools/check/case_data.py", "tools/check/unwritten_gate.py")
_FROM_KOPT = re.compile(r"^(\s*)from kopt\.", re.MULTILINE)
_NOTE = "# Part of kopt, with its imports renamed. SPDX-License-Identifier: Apache-2.0\n"


def oracle_files(subject: Subject) -> dict[str, str]:
    """Return the files by their path below the test's folder."""
    oracle = (subject.problem.folder / "oracle.py").read_text("utf-8")
    modules = _closure([*_ROOTS, *_imported("oracle.py", oracle)])
    folders = {str(parent) for path in modules for parent in PurePosixPath(path).parents}
    result = {f"{PACKAGE}/{path}": _NOTE + _renamed(text) for path, text in modules.items()}
    for folder in sorted(folders):
        path = f"{PACKAGE}/{folder}/__init__.py".replace("/./", "/")
        result[path] = '"""Part of kopt: its oracle and gates."""\n'
    result["oracle.py"] = _NOTE + _renamed(oracle)
    result["problem.json"] = subject.problem.model_dump_json(indent=1, exclude={"folder"}) + "\n"
    return result


def _closure(paths: list[str]) -> dict[str, str]:
    """Return the text of every module of kopt that `paths` reach, themselves included."""
    root = files("kopt")
    found: dict[str, str] = {}
    pending = list(paths)
    while pending:
        path = pending.pop()
        if path not in found:
            found[path] = root.joinpath(path).read_text("utf-8")
            pending += _imported(path, found[path])
    return dict(sorted(found.items()))


def _imported(path: str, text: str) -> Iterator[str]:
    """Give the modules of kopt that `text`, the module at `path`, imports from."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            if node.level == 1:
                yield str(PurePosixPath(path).parent / f"{node.module.replace('.', '/')}.py")
            elif node.module.startswith("kopt."):
                yield node.module.removeprefix("kopt.").replace(".", "/") + ".py"


def _renamed(text: str) -> str:
    return _FROM_KOPT.sub(rf"\1from {PACKAGE}.", text)
