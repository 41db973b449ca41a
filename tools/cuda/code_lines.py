"""Source lines of machine code, from the line table of a cubin."""

import re
from collections.abc import Mapping
from pathlib import Path

from kopt.config.settings import Settings

from .compiler_log import CANDIDATE_FILE
from .nvdisasm import run_nvdisasm
from .toolchain import FoundToolchain

LineTable = Mapping[str, Mapping[int, int]]
"""By kernel, the line of the candidate, from 1, of the instruction at an address in bytes."""
_SECTION = re.compile(r"^\.text\.(\S+):$")
_PLACE = re.compile(r'"([^"]*)", line (\d+)')
_ADDRESS = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/")


def read_lines(cubin: bytes, toolchain: FoundToolchain, settings: Settings) -> LineTable:
    """Return the lines of all kernels in `cubin`; empty where no nvdisasm is installed.

    Args:
        cubin: With a line table (nvcc -lineinfo).
        toolchain: Where nvdisasm is.
        settings: Of the sandbox.

    Raises:
        InfraError: nvdisasm cannot read the cubin.
    """
    text = run_nvdisasm(cubin, toolchain, settings, ("-gi", "-c"))
    return {} if text is None else parse_lines(text)


def parse_lines(text: str) -> LineTable:
    """Return the lines in the output of `nvdisasm -gi -c`.

    Code of other files has the line of the candidate that calls it.
    """
    found: dict[str, dict[int, int]] = {}
    lines: dict[int, int] = {}
    here: int | None = None
    is_open = False
    for row in text.splitlines():
        if begun := _SECTION.match(row):
            lines = found.setdefault(begun[1], {})
            here = None
        elif "//## File" in row:
            places = [(Path(name).name, int(line)) for name, line in _PLACE.findall(row)]
            own = [line for name, line in places if name == CANDIDATE_FILE]
            here = own[-1] if own else (here if is_open else None)
            is_open = True
        elif address := _ADDRESS.match(row):
            is_open = False
            if here is not None:
                lines[int(address[1], 16)] = here
    return found
