"""What kernels ask of the caches: policies that keep lines and prefetches are told, no more."""

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.tools.cuda.cubin import read_cubin
from kopt.tools.cuda.cubin_screen import screen_cubin
from kopt.tools.cuda.l2_requests import cache_requests
from kopt.tools.cuda.sass import SassFunction, disassemble
from kopt.tools.cuda.sass_reader import read_instructions
from kopt.tools.cuda.toolchain import FoundToolchain
from support.cuda_sources import cubin_of
from support.quick_cases import first_quick

SOURCE = Path(__file__).with_name("cache_requests.cu").read_text("utf-8")
ARCHS = pytest.mark.parametrize("arch", first_quick(["sm_90a", "sm_100a"], 1))


def _functions(
    source: str, settings: Settings, toolchain: FoundToolchain, arch: str
) -> tuple[SassFunction, ...]:
    functions = disassemble(cubin_of(source, settings, arch), toolchain, settings)
    assert functions is not None
    return functions


@ARCHS
def test_policies_that_keep_lines_and_prefetches_are_flagged_and_others_are_not(
    arch: str, settings: Settings, toolchain: FoundToolchain
) -> None:
    found = {f.name: f.screened for f in _functions(SOURCE, settings, toolchain, arch)}
    assert len(found) > 15
    for name, screened in found.items():
        expected: set[str] = {"cache_policy"} if "keeps" in name else set()
        if "fetches" in name:
            expected |= {"prefetch"}
        if "early" in name:
            expected |= {"early_prefetch"}
        assert screened == expected, name


@ARCHS
def test_the_reader_of_machine_code_takes_only_kernels_without_such_requests(
    arch: str, settings: Settings
) -> None:
    facts = read_cubin(cubin_of(SOURCE, settings, arch))
    read: set[str] = set()
    for name, code in facts.code.items():
        alone = replace(facts, code={name: code})
        if read_instructions(alone, arch) is not None:
            read.add(name)
    assert not [name for name in read if not name.startswith("plain_")]
    assert {"plain_streaming", "plain_modes", "plain_branches", "plain_tile"} <= read


def test_a_flag_says_what_it_means_for_times_and_refuses_nothing(
    settings: Settings, toolchain: FoundToolchain
) -> None:
    cubin = cubin_of(SOURCE, settings, "sm_90a")
    screening = screen_cubin(read_cubin(cubin), disassemble(cubin, toolchain, settings))
    assert screening.refused == ()
    (policy,) = [text for text in screening.flagged if text.startswith("kernel keeps_given ")]
    assert "a time may depend on what earlier calls left" in policy
    (early,) = [text for text in screening.flagged if text.startswith("kernel early_line ")]
    assert "before it waits for the launch before it" in early


@pytest.mark.slow  # compiles and disassembles
@ARCHS
def test_a_kernel_that_could_write_constant_variables_is_refused(
    arch: str, settings: Settings, toolchain: FoundToolchain
) -> None:
    source = """
__constant__ int kept[64] = {1};
extern "C" __global__ void hidden(int* o, int n) {
  unsigned long long place;
  asm volatile("cvta.const.u64 %0, kept;" : "=l"(place));
  o[0] = reinterpret_cast<int*>(place)[n]++;
}
extern "C" __global__ void indexed(int* o, int n) { o[0] = kept[n] + kept[3]; }
"""
    cubin = cubin_of(source, settings, arch)
    facts = read_cubin(cubin)
    assert read_instructions(facts, arch) is None
    (refusal,) = screen_cubin(facts, disassemble(cubin, toolchain, settings)).refused
    assert refusal.message.startswith("kernel hidden takes the address of a constant variable")


@pytest.mark.parametrize(("slot", "is_policy"), [("0x208", False), ("0x220", True)])
def test_a_descriptor_kept_in_ordinary_registers_is_followed(slot: str, is_policy: bool) -> None:
    instructions = [
        ("LDC.64", f"R10,c[0x0][{slot}]"),
        ("ULEA", "UR4,UR11,UR4,0x18"),
        ("R2UR", "UR4,R10"),
        ("R2UR", "UR5,R11"),
        ("LDG.E", "R16,desc[UR4][R4.64]"),
    ]
    assert ("cache_policy" in cache_requests(instructions, 0x208)) == is_policy


@pytest.mark.parametrize(("slot", "is_policy"), [("0x208", False), ("0x220", True)])
def test_a_descriptor_that_is_moved_is_followed(slot: str, is_policy: bool) -> None:
    instructions = [
        ("ULDC.64", f"UR8,c[0x0][{slot}]"),
        ("IMAD.U32", "R10,RZ,RZ,UR8"),
        ("MOV", "R11,UR9"),
        ("IMAD.MOV.U32", "R20,RZ,RZ,R10.reuse"),
        ("CALL.REL.NOINC", "0x400"),
        ("R2UR", "UR4,R20"),
        ("R2UR", "UR5,R21"),
        ("STG.E", "desc[UR4][R4.64],R16"),
    ]
    assert ("cache_policy" in cache_requests(instructions, 0x208)) == is_policy


def test_the_descriptor_of_a_matrix_in_shared_memory_is_no_policy() -> None:
    product = ("HGMMA.64x256x16.F32.BF16", "R24,gdesc[UR16],R24,gsb0")
    assert cache_requests([product], default_slot=0x208) == frozenset()
