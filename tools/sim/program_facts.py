"""What must be known of a linked program to run it: entries, shared variables, constant tables."""

import re
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection

from kopt.kernels.record import Record
from kopt.tools.sandbox.policy import SandboxLevel

from .source_lines import source_lines
from .symbol_table import (
    FILE,
    FIRST_RESERVED,
    LOCAL,
    OBJECT,
    UNDEFINED,
    TableSymbol,
    read_relocations,
    read_symbols,
)
from .unit import entry_name

_LENGTH = re.compile(r"E(\d+)")
_ACCESS_HOOK = re.compile(r"__tsan_(unaligned_|volatile_)?(read|write)(\d+|_range)$")
_FUNCTION = re.compile(r"^\s*\.type\s+([^\s,]+),\s*@function", re.MULTILINE)
_ABOUT_ITSELF = re.compile(
    r"\s*(?:\.(?:type|size|globl|weak|hidden|section|string|asci[iz])\s|[^\s:]+:\s*$)"
)
_NAME = re.compile(r"[A-Za-z_$][\w.$]*")
_GUARD = "_ZGV"  # of a variable whose constructor does nothing; the runtime keeps it from running

DYNAMIC_SHARED = "dynamic_smem"
"""How all `extern __shared__` arrays together are called; the runtime knows this name."""


class SharedVariable(Record):
    """One static `__shared__` variable, or all dynamic shared memory."""

    name: str
    address: int
    size_bytes: int


class ProgramFacts(Record):
    """Addresses in a linked program."""

    entries: dict[str, int]
    """Kernel name to the address of its entry."""
    shared: tuple[SharedVariable, ...]
    """By address; the last-declared size of dynamic shared memory is its whole capacity."""
    constants: tuple[int, int]
    """First and last-plus-one address of tables that the candidate may read."""
    access_lines: dict[int, int]
    """The candidate's line of each load and store in its code, by the address behind its hook."""


class SimProgram(ProgramFacts):
    """A linked program, ready to run."""

    executable: str
    sandbox: SandboxLevel
    """Level under which it was compiled."""
    narrowest_access_bytes: int
    """The width of the narrowest of its loads and stores: 1, 2 or 4."""
    stack_bytes: int
    """What its functions together take of a thread's stack: local arrays, spilled values."""


def read_program_facts(
    unit_object: Path, executable: Path, kernels: tuple[str, ...]
) -> ProgramFacts:
    """Return the addresses in `executable` of what `unit_object` defines.

    Beside the object lies its assembly.
    """
    uncalled = _uncalled(unit_object.with_suffix(".s").read_text("utf-8"))
    uncalled -= {entry_name(number) for number in range(len(kernels))}
    with unit_object.open("rb") as stream:
        elf = ELFFile(stream)
        defined = read_symbols(elf)
        names = {symbol.name for symbol in defined if _is_variable(elf, symbol)}
        unit_file = next(symbol.name for symbol in defined if symbol.type == FILE)
    with executable.open("rb") as stream:
        elf = ELFFile(stream)
        linked = read_symbols(elf)
        symbols = _own_symbols(linked, unit_file)
        shared = [
            SharedVariable(
                name=_source_name(name),
                address=symbols[name].value,
                size_bytes=symbols[name].size,
            )
            for name in names
        ]
        dynamic = symbols["kopt_sim_dynamic_shared"]
        shared.append(
            SharedVariable(name=DYNAMIC_SHARED, address=dynamic.value, size_bytes=dynamic.size)
        )
        rodata, data = elf.get_section_by_name(".rodata"), elf.get_section_by_name(".data")
        assert rodata is not None and data is not None  # the runtime has both
        return ProgramFacts(
            entries={
                kernel: symbols[entry_name(number)].value for number, kernel in enumerate(kernels)
            },
            shared=tuple(sorted(shared, key=lambda variable: variable.address)),
            constants=(
                rodata["sh_addr"],
                data["sh_addr"] + data["sh_size"],
            ),
            access_lines=source_lines(
                str(executable),
                _outside(_access_sites(elf, linked), [symbols[name] for name in uncalled]),
            ),
        )


def _uncalled(assembly: str) -> set[str]:
    """Return the functions that nothing refers to: bodies of what was inlined everywhere."""
    names = set(_FUNCTION.findall(assembly))
    used: set[str] = set()
    for line in assembly.splitlines():
        if not _ABOUT_ITSELF.match(line):
            used.update(_NAME.findall(line))
    return names - used


def _outside(places: list[int], functions: list[TableSymbol]) -> list[int]:
    """Return the places that lie in none of the functions."""
    return [
        place
        for place in places
        if not any(one.value < place <= one.value + one.size for one in functions)
    ]


def _access_sites(elf: ELFFile, symbols: list[TableSymbol]) -> list[int]:
    """Return the return addresses of all calls of an access hook, from the relocations kept."""
    hooks = {number for number, one in enumerate(symbols) if _ACCESS_HOOK.match(one.name)}
    return [
        offset + 4
        for section in elf.iter_sections()
        if isinstance(section, RelocationSection) and section.name.startswith(".rela.text")
        for offset, symbol in read_relocations(section)
        if symbol in hooks
    ]


def _is_variable(elf: ELFFile, symbol: TableSymbol) -> bool:
    if symbol.type != OBJECT or not UNDEFINED < symbol.section < FIRST_RESERVED:
        return False
    if symbol.name.startswith(_GUARD):
        return False
    return str(elf.get_section(symbol.section).name).startswith(".bss")


def _own_symbols(symbols: list[TableSymbol], unit_file: str) -> dict[str, TableSymbol]:
    """Return global symbols, and local ones of the candidate's unit: local names may repeat."""
    found: dict[str, TableSymbol] = {}
    file = ""
    for symbol in symbols:
        if symbol.type == FILE:
            file = symbol.name
        elif symbol.binding != LOCAL or file == unit_file:
            found[symbol.name] = symbol
    return found


def _source_name(symbol: str) -> str:
    """Return a static's own name: `red` for `_ZZ4bsumILi8EEffE3red_0` and `_ZL3red`."""
    if not symbol.startswith("_ZZ"):
        return re.sub(r"^_ZL\d+", "", symbol).split(".")[0]
    for match in _LENGTH.finditer(symbol):
        end = match.end() + int(match[1])
        if end == len(symbol) or symbol[end : end + 1] == "_":  # of several with one name
            return symbol[match.end() : end]
    return symbol
