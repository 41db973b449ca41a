"""What `kopt docs build` says of synopses whose code the libraries no longer have."""

import pytest
from rich.console import Console

from kopt.server.views.docs_library_view import build_view
from kopt.tools.docs.build_records import BuildResult

WIDTH = 120


def _said(lost: tuple[str, ...]) -> list[str]:
    result = BuildResult(
        index="index.sqlite",
        is_new=True,
        sources=(),
        skipped=(),
        chunks=0,
        index_bytes=0,
        files=0,
        reused_files=0,
        seconds={},
        synopses_without_code=lost,
    )
    console = Console(width=WIDTH)
    with console.capture() as capture:
        console.print(*build_view(result), sep="\n")
    return [line.rstrip() for line in capture.get().splitlines() if "synops" in line]


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (("a_kernel",), "1 synopsis is about code that these versions do not have: a_kernel"),
        (tuple("abcd"), "4 synopses are about code that these versions do not have: a, b, c, ..."),
    ],
)
def test_synopses_without_code_are_one_line(lost: tuple[str, ...], said: str) -> None:
    assert _said(lost) == [said]


def test_where_none_is_lost_nothing_is_said() -> None:
    assert _said(()) == []
