"""One compile with everything that follows from it: build, read, screen, keep.

A hit in the cache runs nothing and parses no ELF, nor loads what does (`made_unit.py`): all facts
lie as one record beside the cubin.
"""

from dataclasses import dataclass

from .compile_job import CompileContext, CompileJob
from .cubin_cache import CacheEntry, CompiledUnit, entry_lock, load_entry, store_entry
from .include_tree import headers_digest

_FACTS_VERSION = "16"
"""Raised whenever the unit of an unchanged cubin would be recorded differently."""
_LOCK_MARGIN_S = 30.0


@dataclass(frozen=True)
class UnitOutcome:
    """A compiled unit and its place in the cache."""

    unit: CompiledUnit
    entry: CacheEntry | None
    """The cache entry; None for what is not kept: time-outs and killed compilers."""
    cached: bool
    """Whether it was found instead of made."""


def compile_unit(job: CompileJob, context: CompileContext) -> UnitOutcome:
    """Return the unit of `job`, from the cache if it is there.

    Raises:
        SetupError: Compiler, sandbox or cache folder cannot be used on this machine; its disk may
            be full.
        InfraError: The sandbox was killed from outside, or a tool contradicts another.
    """
    cache = context.settings.cubin_cache
    key = job.key(
        _FACTS_VERSION,
        context.compiler,
        context.toolchain.version,
        str(context.toolchain.gxx),
        str(context.toolchain.nvdisasm is not None),
        headers_digest(),
    )
    entry = load_entry(cache, key)
    if entry is not None:
        return UnitOutcome(entry.unit, entry, cached=True)
    # Waiting longer than a compile may take means that a waiter finds a result at the end.
    with entry_lock(cache, key, context.wall_s + _LOCK_MARGIN_S):
        entry = load_entry(cache, key)
        if entry is not None:
            return UnitOutcome(entry.unit, entry, cached=True)
        from .made_unit import make_unit

        unit, run = make_unit(job, context)
        if not unit.repeatable:
            return UnitOutcome(unit, None, cached=False)
        store_entry(cache, key, unit, run.cubin, run.log)
        return UnitOutcome(unit, load_entry(cache, key), cached=False)
