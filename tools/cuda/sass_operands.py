"""Operands of machine code: slots of constant bank 0, and the formats of packed conversions (F2FP).

The driver fills places in constant bank 0 by generation of the hardware. Source: the machine code
that CUDA 13.2 makes of `cvta.const` and of a plain load, for each target.

nvdisasm names both formats: F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C makes e2m1 from fp32. In the
instruction word they are bits of the upper half, beside rounding, saturation and ReLU.

Source: the output of `nvdisasm -hex` of CUDA 13.2 for cvt instructions of sm_90a and sm_100a; the
tests hold this table against nvdisasm.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class ConstantSlots:
    """Offsets in bytes."""

    descriptor: int
    """The 64-bit descriptor of global memory that every ordinary access names."""
    constant_address: int
    """Generic address of the module's constant variables: a kernel with it could write them."""


def constant_slots(major: int) -> ConstantSlots:
    """Return the places for a major compute capability, 8 or later."""
    if major < 9:
        return ConstantSlots(descriptor=0x118, constant_address=0x50)
    if major == 9:
        return ConstantSlots(descriptor=0x208, constant_address=0xD0)
    return ConstantSlots(descriptor=0x358, constant_address=0x120)


_FORMAT = re.compile(r"E\dM\d|E8|BF16|F16|F32")
_NAMES = {"E8": "ue8m0"}
_USUAL_SOURCE = "F32"

# Bits 72 to 95 of the word, without ReLU (bit 75), saturation (77) and rounding (79, 80).
_FORM_BITS = 0xFFFFFF & ~0x1A8
_FORMS = {
    0x000000: "F16.F32",
    0x000010: "BF16.F32",
    0x020004: "F16.E5M2",
    0x020006: "F16.E4M3",
    0x020402: "F16.E2M1",
    0x020404: "F16.E2M3",
    0x020406: "F16.E3M2",
    0x020816: "BF16.E8",
    0x042050: "E2M1.F32",
    0x046040: "E2M3.F32",
    0x046050: "E3M2.F32",
    0x048002: "E5M2.F16",
    0x048012: "E4M3.F16",
    0x048040: "E5M2.F32",
    0x048050: "E4M3.F32",
    0x04C040: "E8.F32",
}


def conversion_opcode(high: int) -> str | None:
    """Return the opcode of a packed conversion, e.g. F2FP.E2M1.F32; None for an unknown form.

    Args:
        high: The upper 64 bits of its instruction word.
    """
    formats = _FORMS.get((high >> 8) & _FORM_BITS)
    return None if formats is None else f"F2FP.{formats}"


def count_conversions(opcodes: Iterable[str]) -> dict[str, int]:
    """Return counts of the packed conversions among `opcodes` by what they make.

    `e2m1`, `e4m3`, `bf16` ... are made from fp32; `f16_from_e4m3` is what it says.
    """
    names = (_name(opcode) for opcode in opcodes if opcode.partition(".")[0] == "F2FP")
    return dict(sorted(Counter(names).items()))


def _name(opcode: str) -> str:
    formats = [part for part in opcode.split(".") if _FORMAT.fullmatch(part)]
    names = [_NAMES.get(part, part.lower()) for part in formats]
    if len(names) < 2 or formats[1] == _USUAL_SOURCE:
        return names[0] if names else "other"
    return f"{names[0]}_from_{names[1]}"
