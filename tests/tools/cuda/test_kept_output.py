"""What NVIDIA's tools have made is kept by its content, and made again where it is damaged."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.tools.cuda.kept_output import kept_output


def _files(home: Path) -> list[Path]:
    return sorted((Settings(home).cubin_cache / "outputs").glob("*"))


def test_an_output_is_made_once_for_the_same_contents(tmp_path: Path) -> None:
    made: list[str] = []

    def make(name: str) -> bytes:
        made.append(name)
        return name.encode() * 1000

    for parts in (("a", b"b"), ("ab", b""), ("a", b"b")):
        for settings in (Settings(tmp_path / "one"), Settings(tmp_path / "other")):
            assert kept_output(parts, lambda: make("x"), settings) == b"x" * 1000
    assert len(made) == 2 * 2
    assert len(_files(tmp_path / "one")) == 2


@pytest.mark.parametrize("damage", [b"", b"no zlib", None])
def test_a_damaged_output_is_made_again(tmp_path: Path, damage: bytes | None) -> None:
    settings = Settings(tmp_path)
    kept_output(("a",), lambda: b"right" * 1000, settings)
    (file,) = _files(tmp_path)
    file.write_bytes(file.read_bytes()[:-3] if damage is None else damage)
    assert kept_output(("a",), lambda: b"again", settings) == b"again"
    assert kept_output(("a",), lambda: b"never", settings) == b"again"


def test_what_could_not_be_made_is_tried_again(tmp_path: Path) -> None:
    assert kept_output(("a",), lambda: None, Settings(tmp_path)) is None
    assert kept_output(("a",), lambda: b"now", Settings(tmp_path)) == b"now"


def test_where_nothing_can_be_written_the_output_is_made(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    settings = Settings(blocked / "home")
    assert [kept_output(("a",), lambda: b"x", settings) for _ in range(2)] == [b"x", b"x"]
