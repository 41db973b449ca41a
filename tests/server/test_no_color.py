"""NO_COLOR: text without any style, on a terminal too."""

import os
import sys
from pathlib import Path

import pytest

from support.on_terminal import OnTerminal
from support.quick_cases import first_quick

KOPT = Path(sys.executable).with_name("kopt")


@pytest.mark.parametrize(("value", "is_plain"), first_quick([("1", True), ("", False)], 1))
def test_no_color_takes_bold_and_dim_away_too(tmp_path: Path, value: str, is_plain: bool) -> None:
    environment = {
        **os.environ,
        "KOPT_HOME": str(tmp_path),
        "TERM": "xterm-256color",
        "NO_COLOR": value,
    }
    with OnTerminal([KOPT, "list", "silu"], environment) as terminal:
        assert terminal.ending() == 0
    assert b"silu_and_mul" in terminal.shown
    assert (b"\x1b[" not in terminal.shown) == is_plain
