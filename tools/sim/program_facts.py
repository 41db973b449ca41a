"""What must be known of a linked program to run it: entries, shared variables, constant tables."""

import re
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import Symbol, SymbolTableSection

from kopt.kernels.record import Record
from kopt.tools.sandbox.policy import SandboxLevel

from .source_lines import source_lines
from .unit import entry_name

_LENGTH = re.compile(r"E(\d+)")
_ACCESS_HOOK = re.compile(r"__tsan_(unaligned_|volatile_)?(read|write)(\d+|_range)$")
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
    """Return the addresses in `executable` of what `unit_object` defines."""
    with unit_object.open("rb") as stream:
        elf = ELFFile(stream)
        names = {str(s.name) for s in _symbols(elf) if _is_variable(elf, s)}
        unit_file = next(str(s.name) for s in _symbols(elf) if _type(s) == "STT_FILE")
    with executable.open("rb") as stream:
        elf = ELFFile(stream)
        symbols = _own_symbols(elf, unit_file)
        shared = [
            SharedVariable(
                name=_source_name(name),
                address=symbols[name]["st_value"],
                size_bytes=symbols[name]["st_size"],
            )
            for name in names
        ]
        dynamic = symbols["kopt_sim_dynamic_shared"]
        shared.append(
            SharedVariable(
                name=DYNAMIC_SHARED, address=dynamic["st_value"], size_bytes=dynamic["st_size"]
            )
        )
        rodata, data = elf.get_section_by_name(".rodata"), elf.get_section_by_name(".data")
        assert rodata is not None and data is not None  # the runtime has both
        return ProgramFacts(
            entries={
                kernel: symbols[entry_name(number)]["st_value"]
                for number, kernel in enumerate(kernels)
            },
            shared=tuple(sorted(shared, key=lambda variable: variable.address)),
            constants=(
                rodata["sh_addr"],
                data["sh_addr"] + data["sh_size"],
            ),
            access_lines=source_lines(str(executable), _access_sites(elf)),
        )


def _access_sites(elf: ELFFile) -> list[int]:
    """Return the return addresses of all calls of an access hook, from the relocations kept."""
    table = elf.get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    sites: list[int] = []
    for section in elf.iter_sections():
        if not isinstance(section, RelocationSection) or not section.name.startswith(".rela.text"):
            continue
        for relocation in section.iter_relocations():
            symbol = table.get_symbol(relocation["r_info_sym"])
            if _ACCESS_HOOK.match(str(symbol.name)):
                sites.append(int(relocation["r_offset"]) + 4)
    return sites


def _symbols(elf: ELFFile) -> list[Symbol]:
    table = elf.get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)  # g++ links without -s
    return list(table.iter_symbols())


def _type(symbol: Symbol) -> str:
    return str(symbol["st_info"]["type"])


def _is_variable(elf: ELFFile, symbol: Symbol) -> bool:
    section = symbol["st_shndx"]
    if _type(symbol) != "STT_OBJECT" or not isinstance(section, int):
        return False
    if str(symbol.name).startswith(_GUARD):
        return False
    return str(elf.get_section(section).name).startswith(".bss")


def _own_symbols(elf: ELFFile, unit_file: str) -> dict[str, Symbol]:
    """Return global symbols, and local ones of the candidate's unit: local names may repeat."""
    found: dict[str, Symbol] = {}
    file = ""
    for symbol in _symbols(elf):
        if _type(symbol) == "STT_FILE":
            file = str(symbol.name)
        elif symbol["st_info"]["bind"] != "STB_LOCAL" or file == unit_file:
            found[str(symbol.name)] = symbol
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
