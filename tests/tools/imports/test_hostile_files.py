"""Files of a checkout that are nested without end are faults of their tasks, no end of the call."""

import struct
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.tools.imports.host_python import on_cpu
from kopt.tools.imports.reading import json_lines
from kopt.tools.imports.safetensors_file import stored_tensor

DEEP = "[" * 200_000


def test_a_line_of_brackets_is_no_document() -> None:
    assert list(json_lines(f"{DEEP}\n1\n")) == [1]


def test_a_header_of_brackets_is_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(DEEP)) + DEEP.encode())
    with pytest.raises(ToolError, match="no whole tensor"):
        stored_tensor(path, "x")


@pytest.mark.parametrize("text", ["-" * 100_000 + "1", "x = 1\0"])
def test_python_that_no_parser_takes_is_refused_by_its_file(text: str) -> None:
    with pytest.raises(ToolError, match=r"task\.py is no Python"):
        on_cpu(text, "task.py")
