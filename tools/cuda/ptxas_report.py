"""Registers, spills, stack and shared memory of each kernel, from the text of `ptxas -v`.

nvcc writes it to stderr, NVRTC into the program log; spills are nowhere else told apart into
stores and loads.
"""

import re
from dataclasses import dataclass

_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")


@dataclass(frozen=True)
class PtxasKernel:
    """What ptxas reports for one entry function; counts are per thread, shared memory per block."""

    name: str
    registers: int
    barriers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    static_smem_bytes: int


def parse_ptxas_report(text: str) -> dict[str, PtxasKernel]:
    """Return the report of each entry function by name.

    Spills and stack of functions that a kernel calls and that were not inlined are added to
    nothing: ptxas states them per function, and the kernel's own stack includes its calls.
    """
    kernels: dict[str, PtxasKernel] = {}
    entry = function = ""
    stack = (0, 0, 0)
    for line in text.splitlines():
        if found := _ENTRY.search(line):
            entry, function, stack = found.group(1), "", (0, 0, 0)
        elif found := _PROPERTIES.search(line):
            function = found.group(1)
        elif (found := _STACK.search(line)) and function == entry:
            stack = (int(found.group(1)), int(found.group(2)), int(found.group(3)))
        elif (found := _USED.search(line)) and entry:
            kernels[entry] = _kernel(entry, found, stack)
            entry = ""
    return kernels


def _kernel(name: str, used: re.Match[str], stack: tuple[int, int, int]) -> PtxasKernel:
    barriers = _BARRIERS.search(used.group(2))
    shared = _SHARED.search(used.group(2))
    return PtxasKernel(
        name=name,
        registers=int(used.group(1)),
        barriers=int(barriers.group(1)) if barriers else 0,
        stack_bytes=stack[0],
        spill_store_bytes=stack[1],
        spill_load_bytes=stack[2],
        static_smem_bytes=int(shared.group(1)) if shared else 0,
    )
