"""The instructions of a cubin as counts by class, and those that the screen asks about.

nvdisasm prints JSON: a list of [metadata, functions]. Without nvdisasm there are no counts at all,
which is said as None, never as 0.

Where the global loads of a kernel stand to its wait and its trigger of a dependent launch is read
from the order of the machine code, which is the order of execution where the code is straight, as
in a kernel that loads a row or a few vectors. No time is predicted from it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kopt.config.settings import Settings
from kopt.kernels.compile_result import DependencyOrder

from .l2_requests import Request, cache_requests
from .module_tables import PLAIN_BANK, AddressBank, PlacedInstruction, writes_module_scope
from .nvdisasm import read_output, run_nvdisasm
from .sass_operands import constant_slots, count_conversions
from .toolchain import FoundToolchain

ScreenClass = (
    Literal["stop", "sleep", "wall_clock", "clock", "module_state", "constant_address"] | Request
)

_BY_WIDTH = {"LDG": "ldg", "STG": "stg"}
_CLASSES = {
    "LD": "ld",
    "ST": "st",
    "LDS": "lds",
    "LDSM": "lds",
    "STS": "sts",
    "STSM": "sts",
    "LDL": "ldl",
    "STL": "stl",
    "LDGSTS": "ldgsts",
    "UBLKCP": "tma",
    "UTMALDG": "tma",
    "UTMASTG": "tma",
    "F2FP": "f2fp",
    "MUFU": "mufu",
    "BAR": "bar",
    "SHFL": "shfl",
    "ATOM": "atom",
    "ATOMG": "atom",
    "ATOMS": "atom",
    "RED": "atom",
    "REDG": "atom",
    "REDAS": "atom",
}
# Source: the instruction set reference in NVIDIA's CUDA Binary Utilities, floating point.
_PACKED_MATH = frozenset({"FADD2", "FMUL2", "FFMA2", "HADD2", "HMUL2", "HFMA2", "HMNMX2", "VHMNMX"})
_SCALAR_MATH = frozenset({"FADD", "FMUL", "FFMA", "FMNMX", "FMNMX3"})


@dataclass(frozen=True)
class SassFunction:
    """What is known of one kernel's instructions, those of functions that it calls included."""

    name: str
    instructions: int
    """Without the NOPs that pad the end."""
    mix: Mapping[str, int]
    """Counts by class; classes that do not occur are absent."""
    screened: frozenset[ScreenClass]
    """What the screen asks about and found here."""
    waits_for_producer: bool
    """Whether a programmatic dependent launch is waited for (griddepcontrol.wait)."""
    dependency_order: DependencyOrder | None
    streaming_stores: int
    """Global stores whose lines the caches give up first (st.global.cs)."""
    conversions: Mapping[str, int]
    """Packed conversions by what they make."""
    packed_math: float
    """Share of the floating-point sums, products, minima and maxima that can make two values or
    more, 0 to 1; 0 where there are none. Scalar half arithmetic counts, too: it uses one half of
    such an instruction."""


def sass_function(
    name: str, opcodes: Sequence[str], screened: Iterable[ScreenClass] = ()
) -> SassFunction:
    """Return what the instructions of a kernel tell.

    Args:
        name: Of the kernel.
        opcodes: In the order of the code, with the modifiers that are counted by: `LDG.E.128`.
        screened: What the screen asks about and found in their operands.
    """
    classes = (instruction_class(opcode) for opcode in opcodes)
    return SassFunction(
        name=name,
        instructions=len(opcodes),
        mix=dict(sorted(Counter(found for found in classes if found).items())),
        screened=frozenset(screened),
        waits_for_producer=any(opcode.startswith("ACQBULK") for opcode in opcodes),
        dependency_order=dependency_order(opcodes),
        streaming_stores=_streaming_stores(opcodes),
        conversions=count_conversions(opcodes),
        packed_math=_packed_math(opcodes),
    )


def disassemble(
    cubin: bytes,
    toolchain: FoundToolchain,
    settings: Settings,
    bank: AddressBank = PLAIN_BANK,
) -> tuple[SassFunction, ...] | None:
    """Return what the instructions of `cubin` tell; None where no nvdisasm is installed.

    Args:
        cubin: The machine code.
        toolchain: Has nvdisasm.
        settings: For the sandbox.
        bank: Of the module, which holds addresses of its objects.

    Raises:
        InfraError: nvdisasm cannot read a cubin of its own toolkit.
    """
    text = run_nvdisasm(cubin, toolchain, settings)
    return None if text is None else parse_nvdisasm(text, bank)


def parse_nvdisasm(text: str, bank: AddressBank = PLAIN_BANK) -> tuple[SassFunction, ...]:
    """Return the functions in the output of `nvdisasm -json`.

    Raises:
        ValueError: `text` is not its [metadata, functions].
    """
    metadata, kernels = read_output(text)
    major = int(metadata["SM"]["version"]["major"])
    return tuple(
        _screened_function(
            name,
            [
                PlacedInstruction(
                    bool(entry.get("predicate")),
                    str(entry["opcode"]),
                    str(entry.get("operands", "")),
                )
                for entry in entries
            ],
            (major, bank),
        )
        for name, entries in kernels.items()
    )


def instruction_class(opcode: str) -> str | None:
    """Return the class that `opcode`, e.g. LDG.E.128.CONSTANT, counts in; None for the rest."""
    base, _, modifiers = opcode.partition(".")
    if base in _BY_WIDTH:
        return f"{_BY_WIDTH[base]}_{_width(modifiers)}"
    if base.endswith("MMA"):
        return "mma"
    return _CLASSES.get(base)


def _streaming_stores(opcodes: Iterable[str]) -> int:
    """Count the global stores that the caches give up first: STG.E.EF."""
    return sum(opcode.startswith("STG.") and "EF" in opcode.split(".") for opcode in opcodes)


def _packed_math(opcodes: Iterable[str]) -> float:
    # HADD2.F32 makes one fp32 value of one half.
    names = Counter(op.partition(".")[0] for op in opcodes if not op.startswith("HADD2.F32"))
    packed = sum(names[name] for name in _PACKED_MATH)
    return packed / (packed + sum(names[name] for name in _SCALAR_MATH) or 1)


def _width(modifiers: str) -> str:
    parts = modifiers.split(".")
    for part, width in (("256", "256"), ("128", "128"), ("64", "64")):
        if part in parts:
            return width
    for part, width in (("U16", "16"), ("S16", "16"), ("U8", "8"), ("S8", "8")):
        if part in parts:
            return width
    return "32"


def _screened_function(
    name: str, code: list[PlacedInstruction], module: tuple[int, AddressBank]
) -> SassFunction:
    major, bank = module
    instructions = [(one.opcode, one.operands) for one in code]
    slots = constant_slots(major)
    constant_address = f"c[0x0][{slots.constant_address:#x}]"
    screened: set[ScreenClass] = {
        found for opcode, operands in instructions for found in _screen_classes(opcode, operands)
    }
    if any(constant_address in operands for _, operands in instructions):
        screened.add("constant_address")
    if writes_module_scope(code, bank):
        screened.add("module_state")
    screened |= cache_requests(instructions, slots.descriptor)
    return sass_function(name, [_computed(*one) for one in instructions], screened)


def _computed(opcode: str, operands: str) -> str:
    """Return an opcode; MOV for a multiply-add of zeros, which loads a constant."""
    return (
        "MOV" if opcode.startswith("HFMA2") and ",-RZ,RZ," in operands.replace(" ", "") else opcode
    )


def _screen_classes(opcode: str, operands: str) -> Iterable[ScreenClass]:
    base = opcode.partition(".")[0]
    if base == "BPT":
        yield "stop"
    elif base == "NANOSLEEP":
        yield "sleep"
    if "SR_GLOBALTIMER" in operands:
        yield "wall_clock"
    elif "SR_CLOCK" in operands:
        yield "clock"


_WAIT, _TRIGGER = "ACQBULK", "PREEXIT"
"""griddepcontrol.wait and griddepcontrol.launch_dependents, as nvdisasm of CUDA 13.2 names them."""
_LOADS = frozenset({"LDG", "LDGSTS", "UTMALDG"})
_UNTOLD = frozenset({"CALL", "UBLKCP"})
"""The code of a call stands elsewhere; a bulk copy may go either way."""


def dependency_order(opcodes: Sequence[str]) -> DependencyOrder | None:
    """Return where the loads among the `opcodes` of a kernel stand, by its first wait and trigger.

    Args:
        opcodes: In the order of the code, with or without modifiers: `LDG.E.128`, `LDG.128`.

    Returns:
        None where the order of the code does not tell.
    """
    operations = [opcode.partition(".")[0] for opcode in opcodes]
    if not _UNTOLD.isdisjoint(operations):
        return None
    wait = operations.index(_WAIT) if _WAIT in operations else None
    trigger = operations.index(_TRIGGER) if _TRIGGER in operations else None
    return DependencyOrder(
        loads=_loads(operations),
        loads_before_wait=None if wait is None else _loads(operations[:wait]),
        loads_after_trigger=None if trigger is None else _loads(operations[trigger:]),
    )


def _loads(operations: Sequence[str]) -> int:
    return sum(operation in _LOADS for operation in operations)
