"""The first code on another machine, run by a Python of this one."""

import hashlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from kopt.tools.remote.bootstrap import LEAST_PYTHON, MARK
from kopt.tools.remote.code_bundle import CodeBundle

DIGEST = "0123456789abcdef"
SERVICE = """\
def main(source, answers, home):
    answers.write(b"served " + source.read())
    answers.flush()
"""


@dataclass(frozen=True)
class _Ending:
    facts: list[dict[str, Any]]
    """The lines that it wrote, each a JSON object."""
    rest: bytes
    """What came behind."""


@pytest.fixture
def archive(tmp_path: Path) -> bytes:
    """Return an archive of a kopt whose service answers with what it is sent."""
    root = tmp_path / "tree"
    for name in ("config", "kernels", "tools", "search", "server", "server/far"):
        (root / name).mkdir(parents=True)
        (root / name / "__init__.py").write_text("")
    (root / "__init__.py").write_text("")
    (root / "server" / "far" / "service.py").write_text(SERVICE)
    return CodeBundle(DIGEST, root).archive()


def _run(home: Path, sent: bytes, modules: str = "json", text: str | None = None) -> _Ending:
    source = text or files("kopt.tools.remote").joinpath("bootstrap.py").read_text("utf-8")
    run = subprocess.run(
        [sys.executable, "-c", "import sys; exec(sys.argv[1])", source, str(home), DIGEST, modules],
        input=sent,
        capture_output=True,
        env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=home.parent,
        check=True,
    )
    facts: list[dict[str, Any]] = []
    rest = run.stdout
    while rest.startswith(MARK.encode()):
        line, _, rest = rest.partition(b"\n")
        facts.append(json.loads(line.decode().removeprefix(MARK)))
    return _Ending(facts, rest)


def _parcel(archive: bytes, digest: str = "") -> bytes:
    sha256 = digest or hashlib.sha256(archive).hexdigest()
    return json.dumps({"bytes": len(archive), "sha256": sha256}).encode() + b"\n" + archive


def test_the_code_is_kept_and_served_from(tmp_path: Path, archive: bytes) -> None:
    home = tmp_path / "home"
    first = _run(home, _parcel(archive) + b"calls")
    assert first.facts[0]["has_code"] is False
    assert (first.facts[1], first.rest) == ({"ready": True}, b"served calls")
    again = _run(home, _parcel(b"") + b"more")
    assert again.facts[0]["has_code"] is True
    assert again.rest == b"served more"
    assert [path.name for path in (home / "remote" / "code").iterdir()] == [DIGEST]


def test_what_the_machine_has_is_said_before_anything_is_kept(tmp_path: Path) -> None:
    home = tmp_path / "home"
    ending = _run(home, b"", "json,no_such_module,no_such.package")
    (facts,) = ending.facts
    assert facts["lacking"] == ["no_such_module", "no_such.package"]
    assert facts["is_new_enough"] is True
    assert facts["executable"] == sys.executable
    assert not home.exists()


def test_a_python_that_is_too_old_says_so(tmp_path: Path) -> None:
    source = files("kopt.tools.remote").joinpath("bootstrap.py").read_text("utf-8")
    older = source.replace(f"LEAST_PYTHON = {LEAST_PYTHON}", "LEAST_PYTHON = (99, 0)")
    assert older != source
    (facts,) = _run(tmp_path / "home", b"", text=older).facts
    assert facts["is_new_enough"] is False


def test_code_that_was_cut_off_is_not_kept(tmp_path: Path, archive: bytes) -> None:
    home = tmp_path / "home"
    ending = _run(home, _parcel(archive)[:-100])
    assert ending.facts[1:] == [{"error": "kopt's code did not arrive whole"}]
    assert not (home / "remote" / "code" / DIGEST).exists()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, archive: bytes) -> None:
    home = tmp_path / "home"
    home.write_text("a file is in the way")
    ending = _run(home, _parcel(archive))
    assert ending.facts[1:] == [{"error": f"cannot keep kopt's code in {home}: Not a directory"}]


def test_code_of_old_versions_goes_after_a_month(tmp_path: Path, archive: bytes) -> None:
    codes = tmp_path / "home" / "remote" / "code"
    for name, days in (("old", 31), ("recent", 29)):
        (codes / name).mkdir(parents=True)
        used_s = time.time() - days * 24 * 3600
        os.utime(codes / name, (used_s, used_s))
    (codes / "gone").symlink_to("swept by another caller meanwhile")
    assert _run(tmp_path / "home", _parcel(archive)).facts[-1] == {"ready": True}
    assert sorted(path.name for path in codes.glob("*/")) == sorted([DIGEST, "recent"])


def test_code_that_cannot_be_imported_is_told(tmp_path: Path) -> None:
    (tmp_path / "home" / "remote" / "code" / DIGEST / "kopt").mkdir(parents=True)
    ending = _run(tmp_path / "home", _parcel(b""))
    assert ending.facts[1]["error"].startswith("kopt's code cannot be imported there: ")
