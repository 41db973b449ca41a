"""Places in constant bank 0 that the driver fills, by generation of the hardware.

Source: the machine code that CUDA 13.2 makes of `cvta.const` and of a plain load, for each target.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class ConstantSlots:
    """Offsets in bytes."""

    descriptor: int
    """Of global memory, 64 bits: every access that asks for nothing special names it."""
    constant_address: int
    """Generic address of the module's constant variables: a kernel with it could write them."""


def constant_slots(major: int) -> ConstantSlots:
    """Return the places for a major compute capability, 8 or later."""
    if major < 9:
        return ConstantSlots(descriptor=0x118, constant_address=0x50)
    if major == 9:
        return ConstantSlots(descriptor=0x208, constant_address=0xD0)
    return ConstantSlots(descriptor=0x358, constant_address=0x120)
