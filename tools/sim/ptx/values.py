"""Operands of PTX instructions as C++: registers hold bits, a type says what they mean.

A register is a `std::uint64_t` whose lower bits are its own; `ptx_as<float>(bits)` reads it and
`ptx_bits(value)` makes bits of a value (kopt_sim/ptx.h).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from .ptx_text import PtxError

TYPES = {
    "b8": "std::uint8_t",
    "u8": "std::uint8_t",
    "s8": "std::int8_t",
    "b16": "std::uint16_t",
    "u16": "std::uint16_t",
    "s16": "std::int16_t",
    "f16": "__half",
    "bf16": "__nv_bfloat16",
    "f16x2": "__half2",
    "bf16x2": "__nv_bfloat162",
    "b32": "std::uint32_t",
    "u32": "std::uint32_t",
    "s32": "std::int32_t",
    "f32": "float",
    "b64": "std::uint64_t",
    "u64": "std::uint64_t",
    "s64": "std::int64_t",
    "f64": "double",
    "pred": "bool",
}
"""The C++ type of each PTX type."""
BITS = {
    name: 32 if name.endswith("x2") else int(name.lstrip("bfsu"))
    for name in TYPES
    if name != "pred"
}
"""The width of each type in bits."""
INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
SPECIAL = {
    "laneid": "kopt_sim_lane()",
    "warpid": "kopt_sim::ptx_warp()",
    "tid.x": "threadIdx.x",
    "tid.y": "threadIdx.y",
    "tid.z": "threadIdx.z",
    "ntid.x": "blockDim.x",
    "ntid.y": "blockDim.y",
    "ntid.z": "blockDim.z",
    "ctaid.x": "blockIdx.x",
    "ctaid.y": "blockIdx.y",
    "ctaid.z": "blockIdx.z",
    "nctaid.x": "gridDim.x",
    "nctaid.y": "gridDim.y",
    "nctaid.z": "gridDim.z",
    "lanemask_eq": "1u << kopt_sim_lane()",
    "lanemask_lt": "(1u << kopt_sim_lane()) - 1u",
    "lanemask_le": "(2u << kopt_sim_lane()) - 1u",
    "lanemask_gt": "~((2u << kopt_sim_lane()) - 1u)",
    "lanemask_ge": "~((1u << kopt_sim_lane()) - 1u)",
    "clock": "kopt_sim_clock()",
    "clock64": "kopt_sim_clock()",
    "cluster_ctarank": "kopt_sim_cluster_rank()",
    "cluster_nctarank": "kopt_sim_cluster_size()",
}
"""What special registers hold."""

_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)[uU]?")
_FLOAT_BITS = re.compile(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})")
_FLOAT = re.compile(r"-?\d+\.\d*(?:[eE][+-]?\d+)?")
_ADDRESS = re.compile(r"\[([^\[\]+]+?)(?:\+(-?\w+))?\]")


@dataclass(frozen=True)
class Values:
    """The names of one statement."""

    names: Mapping[str, str]
    """The C++ variable of each register and operand: `%0`, `p`."""
    predicates: frozenset[str] = frozenset()
    """Those among them that are predicates."""
    kinds: Mapping[str, str] = field(default_factory=dict[str, str])
    """The constraint of each operand: r, l, ..."""

    def variable(self, operand: str) -> str:
        """Return the variable of a register.

        Raises:
            PtxError: There is none.
        """
        found = self.names.get(operand)
        if found is None:
            raise PtxError(f"{operand} is no register of the statement")
        return found

    def bits(self, operand: str, kind: str) -> str:
        """Return the bits of a register, special register or number as an operand of a type.

        Raises:
            PtxError: It is something else.
        """
        if operand in self.names:
            if (operand in self.predicates) != (kind == "pred"):
                raise PtxError(f"{operand} as {kind}")
            return self.names[operand]
        if operand.startswith("%"):
            name = operand.lstrip("%")
            if name not in SPECIAL:
                raise PtxError(f"the special register %{name}")
            return f"kopt_sim::ptx_bits({SPECIAL[name]})"
        return _number(operand, kind)

    def read(self, operand: str, kind: str) -> str:
        """Return an operand as a C++ value of its type."""
        return f"kopt_sim::ptx_as<{TYPES[kind]}>({self.bits(operand, kind)})"

    def predicate(self, operand: str) -> str:
        """Return a predicate, negated by a `!`, as a C++ condition."""
        negated, name = ("!", operand[1:]) if operand.startswith("!") else ("", operand)
        if name not in self.predicates:
            raise PtxError(f"{name} is no predicate")
        return f"{negated}kopt_sim::ptx_as<bool>({self.variable(name)})"

    def shared(self, operand: str, kind: str = "void*") -> str:
        """Return an address in the shared space, of 32 or 64 bits, as a pointer to a C++ type."""
        return f"static_cast<{kind}>(kopt_sim_from_shared({self._place(operand)}))"

    def generic(self, operand: str, kind: str) -> str:
        """Return a global or generic address, in 64 bits, as a pointer to a C++ type."""
        return f"reinterpret_cast<{kind}>({self._place(operand, refused='r')})"

    def _place(self, operand: str, refused: str = "") -> str:
        """Return the bits of an address `[%1+16]`, which no operand of a constraint may hold."""
        match = _ADDRESS.fullmatch(operand)
        if match is None:
            raise PtxError(f"{operand} is no address")
        if refused and self.kinds.get(match[1]) == refused:
            raise PtxError(f'an address by "{refused}"({match[1]})')
        offset = "0" if match[2] is None else _number(match[2], "s64")
        return f"{self.bits(match[1], 'u64')} + {offset}"

    def write(self, operand: str, value: str) -> str:
        """Return the statement that sets a register to the bits of a C++ value; `_` takes none."""
        if operand == "_":
            return f"static_cast<void>({value});"
        return f"{self.variable(operand)} = kopt_sim::ptx_bits({value});"


def widened(value: str, kind: str) -> str:
    """Return a value that fills its register, which may be wider, with its sign."""
    return f"static_cast<std::int64_t>({value})" if kind in ("s8", "s16", "s32") else value


def elements(operand: str) -> list[str]:
    """Return the elements of `{a,b}`, or the operand alone."""
    if operand.startswith("{") and operand.endswith("}"):
        return operand[1:-1].split(",")
    return [operand]


def _number(text: str, kind: str) -> str:
    """Return the bits of a literal."""
    exact = _FLOAT_BITS.fullmatch(text)
    if exact is not None:
        return f"0x{exact[1] or exact[2]}ull"
    if kind in ("f32", "f64") and _FLOAT.fullmatch(text):
        return f"kopt_sim::ptx_bits({text}{'f' if kind == 'f32' else ''})"
    if _INTEGER.fullmatch(text) and not kind.startswith(("f", "bf")):
        return f"static_cast<std::uint64_t>(static_cast<std::int64_t>({text.rstrip('uU')}))"
    raise PtxError(f"{text} as {kind}")
