"""`kopt check` and `kopt profile` through the real stages, once: nothing is replaced here."""

from pathlib import Path

import pytest

from support.command_line import Kopt

REFERENCE = Path(__file__).parents[2] / "kernels" / "problems" / "silu_and_mul" / "reference.cu"


def test_a_reference_kernel_passes_and_is_profiled(kopt: Kopt) -> None:
    checked = kopt("check", REFERENCE, "--json")
    assert (checked.code, checked.document["status"]) == (0, "passed")

    profiled = kopt("profile", REFERENCE)
    assert profiled.code == 0
    assert "us estimated, not measured" in profiled.stdout
    assert "occupancy" in profiled.stdout
    assert "correctness: not checked" in profiled.stdout
    assert len(profiled.stdout.splitlines()) <= 40

    document = kopt("profile", REFERENCE, "--json").document
    assert document["schema"] == "kopt.profile/1"
    assert document["estimate"]["provenance"] == "estimated"


@pytest.mark.slow  # compiles and disassembles
def test_machine_code_of_a_line_is_shown_and_unclear_asking_is_refused(kopt: Kopt) -> None:
    shown = kopt("profile", REFERENCE, "--arch", "H100", "--sass", "26").stdout
    assert "Machine code of silu_and_mul_kernel for sm_90a, line 26" in shown
    assert " L26 MUFU.EX2 " in shown
    for words in (("--sass", "hott"), ("--sass", "hot", "--tune", "all")):
        refused = kopt("profile", REFERENCE, *words)
        assert (refused.code, "sass" in refused.stderr) == (2, True)
