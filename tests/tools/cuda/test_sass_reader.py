"""The reader of machine code against nvdisasm, kernel by kernel."""

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.tools.cuda.cubin import CubinFacts, read_cubin
from kopt.tools.cuda.sass import disassemble
from kopt.tools.cuda.sass_reader import read_instructions
from kopt.tools.cuda.toolchain import FoundToolchain
from support.cuda_sources import FP4_QUANTIZE, cubin_of

ZOO = Path(__file__).with_name("instruction_zoo.cu").read_text("utf-8")


def only(facts: CubinFacts, name: str) -> CubinFacts:
    """The facts of one kernel, as if its module held nothing else."""
    return replace(facts, code={name: facts.code[name]})


@pytest.mark.slow  # a large module is compiled and disassembled
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_every_kernel_it_reads_is_read_as_nvdisasm_does(
    settings: Settings, toolchain: FoundToolchain, arch: str
) -> None:
    cubin = cubin_of(ZOO, settings, arch)
    facts = read_cubin(cubin)
    expected = disassemble(cubin, toolchain, settings)
    assert expected is not None
    left: set[str] = set()
    for function in expected:
        found = read_instructions(only(facts, function.name), arch)
        if found is None:
            left.add(function.name)
        else:
            assert found == (function,)
    assert left == {name for name in facts.code if name.startswith("left_")}
    assert len(left) == 5
    assert len(expected) > 18


@pytest.mark.slow  # compiles a large module
def test_one_kernel_that_asks_for_a_closer_look_is_enough(settings: Settings) -> None:
    facts = read_cubin(cubin_of(ZOO, settings, "sm_90a"))
    assert read_instructions(facts, "sm_90a") is None


@pytest.mark.slow  # compiles a kernel of NVFP4
def test_an_unknown_opcode_or_architecture_is_left_to_nvdisasm(settings: Settings) -> None:
    facts = read_cubin(cubin_of(FP4_QUANTIZE, settings, "sm_100a"))
    assert read_instructions(facts, "sm_100a") is not None
    assert read_instructions(facts, "sm_120a") is None
    code = facts.code["quantize"]
    unknown = replace(facts, code={"quantize": b"\xff" * 16 + code[16:]})
    assert read_instructions(unknown, "sm_100a") is None
