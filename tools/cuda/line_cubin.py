"""A second cubin of the same code with a line table, for profilers and sanitizers.

The shipped cubin has none, because a line table names folders (`nvcc.py`). Its instructions must
not differ: where they do, the second cubin would be another kernel, and is not used.
"""

import io

from elftools.elf.elffile import ELFFile

from .compile_job import CompileContext, CompileJob
from .nvcc import run_nvcc_with_lines


def cubin_with_lines(job: CompileJob, shipped: bytes, context: CompileContext) -> bytes | None:
    """Return a cubin with lines whose instructions are those of `shipped`; None if there is none.

    Args:
        job: What `shipped` was made from.
        shipped: The cubin that is checked, timed and handed out.
        context: Its compiler must be the one that made `shipped`.

    Raises:
        SetupError: The sandbox or the compiler cannot start.
        InfraError: The sandbox was killed from outside.
    """
    lined = run_nvcc_with_lines(job, context).cubin
    if lined is None or _instructions(lined) != _instructions(shipped):
        return None
    return lined


def _instructions(cubin: bytes) -> dict[str, bytes]:
    """The code of each function by its section's name, e.g. `.text.fused_add`."""
    sections = ELFFile(io.BytesIO(cubin)).iter_sections()
    return {one.name: one.data() for one in sections if one.name.startswith(".text")}
