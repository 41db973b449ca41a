"""Reading a candidate: what is no source is refused, and nothing is waited for."""

import os
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.kernels.candidate import MAX_SOURCE_BYTES, candidate_of_text, read_candidate


def test_a_source_of_the_largest_size_is_read(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text("x" * MAX_SOURCE_BYTES)
    assert len(read_candidate(path).source) == MAX_SOURCE_BYTES


def test_one_byte_more_is_refused_without_reading_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # sparse: more than any memory
    with pytest.raises(ToolError, match="at most 1048576 bytes"):
        read_candidate(path)


def test_a_text_is_held_to_the_same_size_in_bytes() -> None:
    assert candidate_of_text("x" * MAX_SOURCE_BYTES, "k.cu").name == "k.cu"
    with pytest.raises(ToolError, match="1048578 bytes: a candidate has at most 1048576 bytes"):
        candidate_of_text("\u00e9" * (MAX_SOURCE_BYTES // 2 + 1))


def test_a_text_that_no_file_could_hold_is_refused() -> None:
    with pytest.raises(ToolError, match=r"not valid Unicode text \(character 4\)"):
        candidate_of_text("int \ud800")


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    os.mkfifo(path)
    with pytest.raises(ToolError, match="no ordinary file"):
        read_candidate(path)


def test_a_link_to_an_endless_device_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.symlink_to("/dev/zero")
    with pytest.raises(ToolError, match="no ordinary file"):
        read_candidate(path)


def test_a_folder_and_a_missing_file_are_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent.cu"):
        with pytest.raises(ToolError, match="cannot read"):
            read_candidate(path)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_bytes(b"int \xff")
    with pytest.raises(ToolError, match="not UTF-8"):
        read_candidate(path)
