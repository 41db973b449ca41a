"""Packed conversions told apart by format, from opcodes and from instruction words."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.tools.cuda.cubin import read_cubin
from kopt.tools.cuda.sass import disassemble
from kopt.tools.cuda.sass_operands import conversion_opcode, count_conversions
from kopt.tools.cuda.toolchain import FoundToolchain
from support.cuda_sources import cubin_of

pytestmark = pytest.mark.slow  # a compile for each architecture

ZOO = Path(__file__).with_name("instruction_zoo.cu").read_text("utf-8")
FROM_FP32, NEW_FROM_FP32 = ("e5m2", "f16"), ("e2m1", "e2m3", "e3m2", "ue8m0")
FROM_OTHERS = ("e4m3_from_f16", "e5m2_from_f16", "f16_from_e4m3", "f16_from_e5m2")
NEW_FROM_OTHERS = ("bf16_from_ue8m0", "f16_from_e2m1", "f16_from_e2m3", "f16_from_e3m2")
HOPPER = {"bf16": 2, **dict.fromkeys((*FROM_FP32, *FROM_OTHERS), 1)}
BLACKWELL = dict.fromkeys((*NEW_FROM_FP32, *NEW_FROM_OTHERS), 1)


def test_formats_are_counted_by_what_is_made_and_from_what() -> None:
    opcodes = [
        "F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C",
        "F2FP.BF16.F32.PACK_AB.RZ",
        "F2FP.RELU.BF16.F32.PACK_AB",
        "F2FP.F16.E4M3.UNPACK_B",
        "F2FP.SATFINITE.E8.F32.PACK_AB_MERGE_C.RP",
        "F2F.BF16.F32",
        "FADD",
    ]
    expected = {"bf16": 2, "e2m1": 1, "f16_from_e4m3": 1, "ue8m0": 1}
    assert count_conversions(opcodes) == expected


def test_a_format_that_is_not_known_still_counts() -> None:
    assert count_conversions(["F2FP.NEW.PACK_AB"]) == {"other": 1}


def test_an_unknown_form_of_the_word_has_no_opcode() -> None:
    assert conversion_opcode(0x010 << 8) == "F2FP.BF16.F32"
    assert conversion_opcode(0xFFF << 8) is None


@pytest.mark.parametrize(
    ("arch", "kernel", "expected"),
    [
        ("sm_90a", "conversions", HOPPER),
        ("sm_100a", "conversions", HOPPER),
        ("sm_100a", "blackwell_conversions", BLACKWELL),
    ],
)
def test_every_form_is_read_from_words_and_from_nvdisasm(
    settings: Settings,
    toolchain: FoundToolchain,
    arch: str,
    kernel: str,
    expected: dict[str, int],
) -> None:
    cubin = cubin_of(ZOO, settings, arch)
    functions = disassemble(cubin, toolchain, settings)
    assert functions is not None
    assert next(f.conversions for f in functions if f.name == kernel) == expected
    code = read_cubin(cubin).code[kernel]
    words = [code[at : at + 16] for at in range(0, len(code), 16)]
    opcodes = [
        conversion_opcode(int.from_bytes(word[8:], "little"))
        for word in words
        if int.from_bytes(word[:8], "little") & 0xFFF == 0x23E
    ]
    assert count_conversions(opcode or "FADD" for opcode in opcodes) == expected
