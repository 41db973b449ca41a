"""Definitions of FlashInfer-Trace imported as a suite, run on sim and scored."""

from pathlib import Path

import pytest

from kopt.server.exits import ExitCode
from support.command_line import Kopt
from support.foreign_checkouts import definition, workload, write_trace

pytestmark = pytest.mark.slow  # a child loads torch for each Definition, 10 s


def test_imported_definitions_run_and_are_scored(kopt: Kopt, tmp_path: Path) -> None:
    columns = {"rows": {"type": "var"}, "columns": {"type": "const", "value": 64}}
    documents = [definition(), definition("scaled_c64", axes=columns)]
    checkout, suite = write_trace(tmp_path / "set", documents, [workload(48)]), tmp_path / "fi"

    imported = kopt("import", "trace", checkout, "-o", suite)
    assert imported.code == ExitCode.PASSED, imported.stdout
    assert f"Next: kopt suite run {suite}  #" in imported.stdout

    ran = kopt("suite", "run", suite, "--device", "sim", "--level", "quick")
    assert ran.code == ExitCode.PASSED, ran.stdout
    assert "2 tasks on sim: 2 valid" in ran.stdout

    scored = kopt("suite", "score", suite, "--json").document
    assert [(one["task"], one["group"]) for one in scored["tasks"]] == [
        ("scaled_c64", "scaling"),
        ("scaled_c96", "scaling"),
    ]
    assert scored["scores"][0]["valid_rate"]["value"] == 1.0
