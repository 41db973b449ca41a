"""Operators of kopt's own in graphs of packaged problems: functions that core ATen has no word for.

A function of a torch_reference.py that has the name of one of them is exported as that operator,
not as what it is made of: a conversion that takes torch thirty operators is one instruction.
"""

from functools import lru_cache
from typing import Any

from .torch_library import Tensor, load_torch

NAMESPACE = "kopt"
PACKED_E2M1 = "packed_e2m1"
"""The e2m1 codes of values (..., n) as uint8 (..., n / 2): nearest, ties to the even code,
saturating; the even element is in the low nibble."""
WRITTEN_WHERE = "written_where"
"""Values as they are; what lies in an output where `valid` is false stays as it was."""
_MIDDLES = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)
"""Between the magnitudes 0, 0.5, 1, 1.5, 2, 3, 4 and 6; a tie goes up where that code is even."""


@lru_cache(maxsize=1)
def custom_operators() -> dict[str, Any]:
    """Return the operators by name, registered with torch as kopt::NAME."""
    torch = load_torch()
    packed = torch.library.custom_op(
        f"{NAMESPACE}::{PACKED_E2M1}", _packed_e2m1, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    packed.register_fake(_packed_shape)
    written = torch.library.custom_op(
        f"{NAMESPACE}::{WRITTEN_WHERE}",
        _written_where,
        mutates_args=(),
        schema="(Tensor x, Tensor valid) -> Tensor",
    )
    written.register_fake(_written_shape)
    return {PACKED_E2M1: packed, WRITTEN_WHERE: written}


def _written_shape(x: Tensor, valid: Tensor) -> Tensor:
    del valid
    return load_torch().empty_like(x)


def _packed_e2m1(x: Tensor) -> Tensor:
    torch = load_torch()
    magnitude, codes = x.abs(), 8 * torch.signbit(x).to(torch.uint8)
    for number, middle in enumerate(_MIDDLES):
        codes += magnitude >= middle if number % 2 else magnitude > middle
    return codes[..., 0::2] | codes[..., 1::2] << 4


def _written_where(x: Tensor, valid: Tensor) -> Tensor:
    return x.masked_fill(~valid, 0)


def _packed_shape(x: Tensor) -> Tensor:
    return x.new_empty((*x.shape[:-1], x.shape[-1] // 2), dtype=load_torch().uint8)
