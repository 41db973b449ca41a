"""What the ELF of a cubin tells without a GPU, and what a cubin may not contain.

It tells kernels, their parameters and module state; `sass.py` reads the instructions, and spills
are only in the compiler's report (`compiler_log.py`).

The screen fails closed, before any launch. A kernel must be a function of its arguments that ends
by itself: state that outlives a launch, calls out of the module and instructions that stall or read
the wall clock are refused. Traps (which cooperative groups' grid barrier contains) are flagged here
and refused by the compile stage unless the launch is cooperative; reads of the SM's cycle counter,
prefetches and cache policies that keep lines are only flagged. This is not a proof of good
behavior: what a kernel does with its arguments is for the check stage.
"""

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import cast

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import Section, SymbolTableSection

from kopt.kernels.compile_result import KernelParameter
from kopt.kernels.record import Diagnostic

from .sass import SassFunction, ScreenClass

# Entries of .nv.info.<kernel>: one byte format, one byte attribute, then the payload.
# Source: `cuobjdump -elf` of CUDA 13 prints the same records by name (EIFMT_*, EIATTR_*).
_FORMAT_NO_VALUE, _FORMAT_BYTE, _FORMAT_HALF, _FORMAT_SIZED = 1, 2, 3, 4
_ATTRIBUTE_MAX_THREADS = 0x05
_ATTRIBUTE_PARAM_CBANK = 0x0A
_ATTRIBUTE_REQUIRED_THREADS = 0x10
_ATTRIBUTE_KPARAM_INFO = 0x17
_MODULE_CONSTANT_BANK = ".nv.constant3"  # what `__constant__` declares
_ADDRESS_BANK = ".nv.constant4"
# Code and initial values: an address in them reaches an object without the address bank.
_LOADED = re.compile(r"\.(text\.|nv\.constant(?!4)|nv\.global)")
_OBJECTS = (".nv.global", ".nv.constant")


class CubinError(ValueError):
    """The bytes are not a cubin that this reader understands; never leaves tools/cuda."""


@dataclass(frozen=True)
class CubinKernel:
    """One entry function: a part of `KernelResources`, named as there."""

    name: str
    parameters: tuple[KernelParameter, ...]
    """By ordinal."""
    parameter_base_bytes: int
    """Where the parameters begin in constant bank 0; their alignment counts from the bank."""
    max_threads_per_block: int | None
    """From `__launch_bounds__`; None without."""
    constant_bytes: int
    """The kernel's own constant banks and the module's `__constant__` variables."""


@dataclass(frozen=True)
class CubinFacts:
    """One cubin."""

    kernels: tuple[CubinKernel, ...]
    """By name."""
    undefined_functions: tuple[str, ...]
    """Functions that are called but defined nowhere in the module."""
    module_global_bytes: int
    """Size of all module-scope variables in global memory, used or not."""
    code: Mapping[str, bytes]
    """Machine code by section: each kernel with the functions that it calls."""
    has_address_bank: bool
    """Whether constant bank 4, which holds addresses of module-scope objects, exists at all."""
    stored_addresses: tuple[str, ...]
    """Module-scope objects whose addresses lie elsewhere: in code, or in a variable's value."""


def read_cubin(data: bytes) -> CubinFacts:
    """Return the facts of one cubin.

    Raises:
        CubinError: `data` is not a whole device ELF.
    """
    try:
        elf = ELFFile(BytesIO(data))
        sections = {section.name: section for section in elf.iter_sections()}
        names = [name[6:] for name in sections if name.startswith(".text.")]
        return CubinFacts(
            kernels=tuple(
                _kernel(name, sections)
                for name in sorted(names)
                if f".nv.constant0.{name}" in sections  # only entry functions have parameters
            ),
            undefined_functions=_undefined_functions(sections),
            module_global_bytes=_module_bytes(sections),
            code={name: sections[f".text.{name}"].data() for name in sorted(names)},
            has_address_bank=any(name.startswith(_ADDRESS_BANK) for name in sections),
            stored_addresses=_stored_addresses(elf),
        )
    except (ELFError, struct.error, UnicodeDecodeError) as error:
        raise CubinError(f"not a cubin: {error}") from error


def _module_bytes(sections: dict[str, Section]) -> int:
    """Return the size of the variables of module scope."""
    held = sum(
        section["sh_size"]
        for name, section in sections.items()
        if name == ".nv.global" or name.startswith(".nv.global.")
    )
    table = sections.get(".symtab")
    symbols = table.iter_symbols() if isinstance(table, SymbolTableSection) else ()
    # ptxas cuts a section's size to 32 bits, not a symbol's.
    vast = (int(one["st_size"]) for one in symbols if one["st_size"] >> 32)
    return max(int(held), *vast, 0)


def _kernel(name: str, sections: dict[str, Section]) -> CubinKernel:
    info = sections.get(f".nv.info.{name}")
    parameters: list[KernelParameter] = []
    max_threads: int | None = None
    base = 0
    for attribute, payload in _info_entries(info.data() if info is not None else b""):
        if attribute == _ATTRIBUTE_KPARAM_INFO:
            parameters.append(_parameter(payload))
        elif attribute == _ATTRIBUTE_PARAM_CBANK:  # symbol (4 bytes), base (2), size (2)
            base = struct.unpack_from("<IHH", payload)[1]
        elif attribute in (_ATTRIBUTE_MAX_THREADS, _ATTRIBUTE_REQUIRED_THREADS):
            x, y, z = struct.unpack_from("<3I", payload)
            max_threads = x * y * z
    constant_bytes = sum(
        section["sh_size"]
        for section_name, section in sections.items()
        if section_name == _MODULE_CONSTANT_BANK
        or (section_name.startswith(".nv.constant") and section_name.endswith(f".{name}"))
    )
    return CubinKernel(
        name=name,
        parameters=tuple(sorted(parameters, key=lambda parameter: parameter.ordinal)),
        parameter_base_bytes=base,
        max_threads_per_block=max_threads,
        constant_bytes=constant_bytes,
    )


def _parameter(payload: bytes) -> KernelParameter:
    """Decode index (4 bytes), ordinal (2), offset (2), flags (4) with the size in bits 18 to 31."""
    _, ordinal, offset, flags = struct.unpack_from("<IHHI", payload)
    return KernelParameter(ordinal=ordinal, offset_bytes=offset, size_bytes=flags >> 18)


def _info_entries(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (attribute, payload) of a .nv.info section; only sized entries carry a payload."""
    position = 0
    while position + 4 <= len(data):
        kind, attribute, size = struct.unpack_from("<BBH", data, position)
        position += 4
        if kind == _FORMAT_SIZED:
            yield attribute, data[position : position + size]
            position += size
        elif kind not in (_FORMAT_NO_VALUE, _FORMAT_BYTE, _FORMAT_HALF):
            raise CubinError(f"unknown entry format {kind} in .nv.info")


def _undefined_functions(sections: dict[str, Section]) -> tuple[str, ...]:
    names: set[str] = set()
    for section in sections.values():
        if isinstance(section, SymbolTableSection):
            for symbol in section.iter_symbols():
                is_function = symbol["st_info"]["type"] == "STT_FUNC"
                if is_function and symbol["st_shndx"] == "SHN_UNDEF":
                    names.add(symbol.name)
    return tuple(sorted(names))


def _stored_addresses(elf: ELFFile) -> tuple[str, ...]:
    names: set[str] = set()
    for section in elf.iter_sections():
        if not isinstance(section, RelocationSection):
            continue
        table = elf.get_section(section["sh_link"])
        loaded = _LOADED.match(elf.get_section(section["sh_info"]).name)
        if loaded is None or not isinstance(table, SymbolTableSection):
            continue
        symbols = list(table.iter_symbols())
        numbers = {cast(int, relocation["r_info_sym"]) for relocation in section.iter_relocations()}
        for symbol in (symbols[number] for number in numbers):
            place = symbol["st_shndx"]
            if isinstance(place, int) and elf.get_section(place).name.startswith(_OBJECTS):
                names.add(symbol.name)
    return tuple(sorted(names))


NOT_INSPECTED = (
    "instructions not inspected: nvdisasm is not installed (pip install 'kopt-mcp[toolkit]')"
)

_REFUSED: Mapping[ScreenClass, tuple[str, str]] = {
    "module_state": (
        "uses variables or tables of module scope in global memory",
        "declare constant tables __constant__, keep everything else in tensors or declared "
        "scratch, and use fast-math functions (__sinf) instead of precise ones",
    ),
    "constant_address": (
        "takes the address of a constant variable, through which it could be written",
        "read constant variables by name and index; a pointer to one is not needed",
    ),
    "sleep": ("contains a sleep", "remove __nanosleep(); wait with barriers or mbarriers"),
    "wall_clock": ("reads the global timer", "kopt measures time; remove the reads"),
}


_FLAGGED: Mapping[ScreenClass, str] = {
    "stop": "contains a trap or breakpoint: a launch that reaches it crashes",
    "clock": "reads the cycle counter",
    "cache_policy": "asks the caches to keep some lines longer than others: a time may depend on "
    "what earlier calls left there",
    "prefetch": "fetches data into a cache ahead of its use",
    "early_prefetch": "fetches data into a cache before it waits for the launch before it: sound "
    "for weights, but inputs that another kernel has only just written lie cold in this benchmark "
    "alone",
}


@dataclass(frozen=True)
class Screening:
    """The outcome of a screen."""

    refused: tuple[Diagnostic, ...]
    flagged: tuple[str, ...]


def screen_cubin(facts: CubinFacts, functions: Sequence[SassFunction] | None) -> Screening:
    """Return what is wrong with a cubin, from its ELF and its instructions.

    Without instructions (None) the ELF alone decides: a module with addresses of module-scope
    objects is refused, used or not, and the result says that instructions were not inspected.
    """
    refused = [
        Diagnostic(
            message=f"the module calls {name}, which is defined nowhere in it",
            hint="no printf, no device-side launch or allocation, no external functions",
        )
        for name in facts.undefined_functions
    ]
    refused += [
        _refusal(f"the module stores the address of {name}: it", "module_state")
        for name in facts.stored_addresses
    ]
    if functions is None:
        if facts.has_address_bank:
            refused.append(_refusal("the module", "module_state"))
        return Screening(tuple(refused), (NOT_INSPECTED,))
    flagged: list[str] = []
    for function in functions:
        for found in sorted(function.screened):
            if found in _REFUSED:
                refused.append(_refusal(f"kernel {function.name}", found))
            else:
                flagged.append(f"kernel {function.name} {_FLAGGED[found]}")
    return Screening(tuple(refused), tuple(flagged))


def _refusal(subject: str, found: ScreenClass) -> Diagnostic:
    reason, hint = _REFUSED[found]
    return Diagnostic(message=f"{subject} {reason}", hint=hint)
