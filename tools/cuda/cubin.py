"""What the ELF of a cubin tells without a GPU.

It tells kernels, their parameters and module state; `sass.py` reads the instructions, and spills
are only in the compiler's report (`compiler_log.py`). What a cubin may contain is for
`cubin_screen.py`.
"""

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import cast

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import Section, Symbol, SymbolTableSection

from kopt.kernels.compile_result import KernelParameter

from .module_tables import LIBRARY_TABLE

# Entries of .nv.info.<kernel>: one byte format, one byte attribute, then the payload.
# Source: `cuobjdump -elf` of CUDA 13 prints the same records by name (EIFMT_*, EIATTR_*).
_FORMAT_NO_VALUE, _FORMAT_BYTE, _FORMAT_HALF, _FORMAT_SIZED = 1, 2, 3, 4
_ATTRIBUTE_MAX_THREADS = 0x05
_ATTRIBUTE_PARAM_CBANK = 0x0A
_ATTRIBUTE_REQUIRED_THREADS = 0x10
_ATTRIBUTE_KPARAM_INFO = 0x17
_MODULE_CONSTANT_BANK = ".nv.constant3"  # what `__constant__` declares
TABLE_BANK = 2
WORD_BYTES = 4
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
    tables: Mapping[str, bytes]
    """Whole words of constant bank 2 by kernel: where the cases of a `switch` begin, literals."""
    has_address_bank: bool
    """Whether constant bank 4, which holds addresses of module-scope objects, exists at all."""
    library_slots: frozenset[int]
    """Where that bank has the addresses of the CUDA library's tables."""
    takes_functions: bool
    """Whether it has the address of a function that the module defines."""
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
            tables={name: _tables(name, sections) for name in names},
            has_address_bank=any(name.startswith(_ADDRESS_BANK) for name in sections),
            library_slots=_slots(elf, lambda symbol: symbol.name.startswith(LIBRARY_TABLE)),
            takes_functions=bool(_slots(elf, _is_own_function)),
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


def _tables(name: str, sections: dict[str, Section]) -> bytes:
    section = sections.get(f".nv.constant{TABLE_BANK}.{name}")
    data: bytes = b"" if section is None else section.data()
    return data[: len(data) // WORD_BYTES * WORD_BYTES]


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


def _is_own_function(symbol: Symbol) -> bool:
    is_function = symbol["st_info"]["type"] == "STT_FUNC"
    return bool(is_function and symbol["st_shndx"] != "SHN_UNDEF")


def _slots(elf: ELFFile, wanted: Callable[[Symbol], bool]) -> frozenset[int]:
    """Return where the bank of addresses has those of the symbols that are `wanted`."""
    slots: set[int] = set()
    for section in elf.iter_sections():
        if not isinstance(section, RelocationSection):
            continue
        table = elf.get_section(section["sh_link"])
        place = elf.get_section(section["sh_info"]).name
        if not place.startswith(_ADDRESS_BANK) or not isinstance(table, SymbolTableSection):
            continue
        for relocation in section.iter_relocations():
            if wanted(table.get_symbol(relocation["r_info_sym"])):
                slots.add(relocation["r_offset"])
    return frozenset(slots)


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
