"""Symbols and relocations of an x86-64 object or program, read a whole table at a time.

pyelftools finds the tables; it would read the fields of each of a program's some thousand entries
one by one, which took nearly half of the CPU time of building a program.
"""

import struct
from dataclasses import dataclass
from typing import Final

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

# Source: System V ABI, AMD64 supplement; Elf64_Sym and Elf64_Rela in <elf.h>.
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")

LOCAL: Final = 0
"""The binding of a symbol that no other object sees."""
OBJECT: Final = 1
"""The type of a variable."""
FILE: Final = 4
"""The type of the entry that names the source file of the local symbols behind it."""
INDIRECT: Final = 10
"""The type of a GNU function that is chosen while the program is loaded."""
UNDEFINED: Final = 0
"""The section of what another object defines."""
FIRST_RESERVED: Final = 0xFF00
"""From here on a section number is none: absolute and common symbols."""


@dataclass(frozen=True, slots=True)
class TableSymbol:
    """One entry of a symbol table."""

    name: str
    type: int
    binding: int
    section: int
    value: int
    size: int


def read_symbols(elf: ELFFile) -> list[TableSymbol]:
    """Return all entries of `.symtab` in their order; [] if there is none."""
    table = elf.get_section_by_name(".symtab")
    if not isinstance(table, SymbolTableSection):
        return []
    names = bytes(table.stringtable.data())
    return [
        TableSymbol(_name(names, start), info & 15, info >> 4, section, value, size)
        for start, info, _, section, value, size in _SYMBOL.iter_unpack(bytes(table.data()))
    ]


def read_relocations(section: RelocationSection) -> list[tuple[int, int]]:
    """Return the offset and the symbol's number of each entry of a `.rela` section."""
    entries = _RELOCATION.iter_unpack(bytes(section.data()))
    return [(offset, info >> 32) for offset, info, _ in entries]


def _name(names: bytes, start: int) -> str:
    return names[start : names.index(b"\0", start)].decode("utf-8", "replace")
