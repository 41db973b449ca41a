"""The first result of README.md: its commands give the output that it shows."""

import re
from pathlib import Path

import pytest

from support.command_line import Kopt

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
COMMANDS, SHOWN = re.findall(
    r"^## A first result\n(.*?)^```text\n(.*?)^```", README, re.MULTILINE | re.DOTALL
)[0]
KERNEL = "silu_and_mul_b8xh14336"


def test_the_broken_copy_ends_as_the_first_page_shows(
    kopt: Kopt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    old, new = re.findall(r"sed 's/(.*?)/(.*?)/' mine.cu > wrong.cu", COMMANDS)[0]
    assert f"kopt check wrong.cu --kernel {KERNEL} --device sim" in COMMANDS
    example = kopt("show", KERNEL, "--example").stdout
    Path("wrong.cu").write_text(example.replace(old, new))
    ended = kopt("check", "wrong.cu", "--kernel", KERNEL, "--device", "sim")
    first, how, *rest = SHOWN.splitlines()
    assert ended.code == 1
    said = " ".join(ended.stdout.split())
    assert [line for line in (first, *rest) if " ".join(line.split()) not in said] == []
    assert how.split(",")[0] == "level quick on sim"


@pytest.mark.slow  # a check of a new program
def test_skeleton_with_its_body_filled_in_passes(
    kopt: Kopt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says all of the mapping: what is missing is one element's value."""
    monkeypatch.chdir(tmp_path)
    skeleton = kopt("show", KERNEL, "--skeleton").stdout
    body = (
        "const float gate = __bfloat162float(input[row * 2 * H + column]);\n"
        "const float up = __bfloat162float(input[row * 2 * H + H + column]);\n"
        "out[row * H + column] = __float2bfloat16(gate / (1.0f + expf(-gate)) * up);"
    )
    Path("mine.cu").write_text(re.sub(r"// Read input;\s*// write.*", body, skeleton))
    assert kopt("check", "mine.cu", "--kernel", KERNEL, "--device", "sim").code == 0
