"""`kopt new` in the sandbox, then a full check of the kernel that it wrote, as a user would."""

import json
from pathlib import Path

import pytest

from kopt.server.exits import ExitCode
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
