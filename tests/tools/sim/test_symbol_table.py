"""Symbols and relocations that are read a table at a time are those that pyelftools reads."""

from elftools.elf.elffile import ELFFile
from elftools.elf.enums import ENUM_ST_INFO_BIND, ENUM_ST_INFO_TYPE
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from kopt.config.settings import Settings
from kopt.tools.sim.symbol_table import read_relocations, read_symbols
from kopt.tools.sim.toolset import find_toolset

SECTIONS = {"SHN_UNDEF": 0, "SHN_ABS": 0xFFF1, "SHN_COMMON": 0xFFF2}


def test_symbols_and_relocations_of_the_runtime_are_those_that_pyelftools_reads(
    settings: Settings,
) -> None:
    with find_toolset(settings).runtime_object.open("rb") as stream:
        elf = ELFFile(stream)
        table = elf.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        found = read_symbols(elf)
        assert len(found) > 300
        for one, wanted in zip(found, table.iter_symbols(), strict=True):
            section = wanted["st_shndx"]
            assert (one.name, one.value, one.size, one.section, one.type, one.binding) == (
                *(wanted.name, wanted["st_value"], wanted["st_size"]),
                SECTIONS.get(section, section),
                ENUM_ST_INFO_TYPE[wanted["st_info"]["type"]],
                ENUM_ST_INFO_BIND[wanted["st_info"]["bind"]],
            )
        tables = [one for one in elf.iter_sections() if isinstance(one, RelocationSection)]
        assert sum(len(read_relocations(one)) for one in tables) > 1000
        for section in tables:
            assert read_relocations(section) == [
                (one["r_offset"], one["r_info_sym"]) for one in section.iter_relocations()
            ]
