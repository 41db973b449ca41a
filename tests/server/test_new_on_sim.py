"""`kopt new` in the sandbox, then a full check of the kernel that it wrote, as a user would."""

import json
import re
import shlex
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.server.exits import ExitCode
from kopt.tools.pytorch.importing import problem_folder
from support.command_line import Kopt
from support.torch_sources import SOURCES

pytestmark = pytest.mark.slow  # torch.export in a fresh process, then ten cases on the simulator


def test_a_layer_norm_with_gelu_in_bf16_is_imported_and_passes(kopt: Kopt, tmp_path: Path) -> None:
    source = tmp_path / "norm_gelu.py"
    source.write_text(SOURCES["norm_gelu"], "utf-8")
    made = kopt("new", source, "-o", tmp_path / "problems", "--json")
    assert made.code == ExitCode.PASSED, made.stderr
    assert made.document["name"] == "norm_gelu"
    assert made.document["left_out"] == {}
    assert made.document["sandbox"] in ("bubblewrap", "landlock", "plain")
    folder = Path(made.document["folder"])
    assert sorted(path.name for path in folder.iterdir()) == [
        *("baseline.py", "graph.json", "import.json", "model.py", "oracle.py"),
        *("problem.yaml", "reference.cu"),
    ]
    assert json.loads((folder / "import.json").read_text("utf-8")) == made.document
    checked = kopt("check", folder / "reference.cu", "--level", "full", "--device", "sim", "--json")
    assert checked.document["status"] == "passed"
    assert checked.code == ExitCode.PASSED


def test_a_file_that_writes_elsewhere_is_stopped_and_leaves_nothing(
    kopt: Kopt, tmp_path: Path
) -> None:
    target, source = tmp_path / "stolen", tmp_path / "writes.py"
    text = SOURCES["relu"] + f"\nopen({str(target)!r}, 'w').write('x')\n"
    source.write_text(text, "utf-8")
    made = kopt("new", source, "-o", tmp_path / "problems", "--json")
    assert made.code == ExitCode.USAGE
    assert "writes.py:" in made.document["message"]
    assert not target.exists()
    assert not (tmp_path / "problems").exists() or not any((tmp_path / "problems").iterdir())


def test_progress_names_each_step_of_six_and_the_second_time_how_long_all_take(
    kopt: Kopt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPT_HOME", str(tmp_path / "home"))  # other tests import in the shared one
    source = tmp_path / "relu.py"
    source.write_text(SOURCES["relu"], "utf-8")
    made = kopt("new", source, "-o", tmp_path / "problems")
    assert made.code == ExitCode.PASSED, made.stderr
    told = re.findall(r"step (\d) of 6: ", made.stderr)
    assert told == sorted(told) and (told[0], told[-1]) == ("1", "6")
    assert " left" not in made.stderr
    again = kopt("new", source, "-o", tmp_path / "problems", "--name", "again")
    assert re.match(
        r"step 1 of 6: .*, about \d+ s left as last time$", again.stderr.splitlines()[1]
    )


def test_import_without_a_first_kernel_leads_to_one_that_is_to_be_filled_in(
    kopt: Kopt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> str:
        raise ToolError("nobody can write this as CUDA")

    monkeypatch.setattr(problem_folder, "emit_candidate", refuse)
    source = tmp_path / "relu.py"
    source.write_text(SOURCES["relu"], "utf-8")
    made = kopt("new", source, "-o", tmp_path / "my problems")
    assert made.code == ExitCode.PASSED, made.stderr
    assert "no reference.cu" in made.stdout
    last = made.stdout.splitlines()[-1].removeprefix("Next: ")
    *words, into, path = shlex.split(last, comments=True)
    assert (words[0], into) == ("kopt", ">")
    Path(path).write_text(kopt(*words[1:]).stdout, "utf-8")
    checked = kopt("check", path)
    assert checked.code == ExitCode.FELL_SHORT  # found, compiled and run; its body is empty
    assert "unwritten" in checked.stdout
