"""Asynchronous copies of PTX as C++: of a thread (cp.async), of a block (bulk), by a tensor map.

Source:
    https://docs.nvidia.com/cuda/parallel-thread-execution/, section 9.7.9.25.
"""

import re
from dataclasses import replace

from .handlers import Handler, operands
from .ptx_text import PtxError, PtxInstruction
from .values import Values

_COUNTED = "mbarrier::complete_tx::bytes"
_TO_SHARED = ("shared::cluster", "shared::cta")
_OF_ARRIVAL = frozenset({"noinc", "shared", "shared::cta"})
_POLICY = "L2::cache_hint"
_RANKS = {f"{rank}d": rank for rank in range(1, 6)}
_TILE = re.compile(r"\[([^\[\],]+),\{([^{}]+)\}\]")


def _copy(one: PtxInstruction, values: Values) -> str:
    """cp.async and its groups; bulk copies and theirs."""
    match one.modifiers:
        case ("async", "commit_group"):
            return "kopt_sim_async_commit();"
        case ("async", "wait_group"):
            return f"kopt_sim_async_wait({values.read(operands(one, 1)[0], 'u32')});"
        case ("async", "wait_all"):
            return "kopt_sim_async_commit(); kopt_sim_async_wait(0);"
        case ("async", "ca" | "cg", "shared" | "shared::cta", "global", *hints) if all(
            hint.startswith("L2::") for hint in hints
        ):
            return _of_thread(one, values)
        case ("async", "mbarrier", "arrive", *how, "b64") if {*how} <= _OF_ARRIVAL:
            counted = "false" if "noinc" in how else "true"
            return f"kopt_sim_async_arrive({values.shared(operands(one, 1)[0])}, {counted});"
        case ("async", "bulk", *words):
            return _bulk(one, words, values)
        case _:
            raise _unknown(one)


def _of_thread(one: PtxInstruction, values: Values) -> str:
    to, source, size, *more = operands(one, 3, 4)
    if any(_POLICY in word for word in one.modifiers):
        raise PtxError("cp.async with a cache policy")
    if "cg" in one.modifiers and size.isdigit() and size != "16":
        raise PtxError(f"cp.async.cg of {size} bytes")
    given = values.read(more[0] if more else size, "u32")
    places = f"{values.shared(to)}, {values.generic(source, 'const void*')}"
    return (
        'kopt_sim_cpu_body("cp.async");'
        f" kopt_sim_async_copy({places}, {values.read(size, 'u32')}, {given});"
    )


def _bulk(one: PtxInstruction, words: list[str], values: Values) -> str:
    """Bulk copies between global memory and the block's own; a cache policy is left out."""
    given = one.operands
    if words[-1:] == [_POLICY]:
        words, given = words[:-1], given[:-1]
    if words[-1:] == ["multicast::cluster"] and given:
        sent = _bulk(replace(one, operands=given[:-1]), words[:-1], values)
        targets = f"kopt_sim_multicast({values.read(given[-1], 'u16')}, __LINE__);"
        return f"{targets} {sent} kopt_sim_multicast(0, __LINE__);"
    match words, given:
        case ["commit_group"], ():
            return "kopt_sim_bulk_commit();"
        case ["wait_group", *read], (count,) if read in ([], ["read"]):
            return f"kopt_sim_bulk_wait({values.read(count, 'u32')});"
        case ["prefetch", *_], _:
            return ""
        case ["global", "shared::cta", "bulk_group"], (to, source, size):
            places = f"{values.generic(to, 'void*')}, {values.shared(source, 'const void*')}"
            sized = f"{places}, {values.read(size, 'u32')}"
            return f"kopt_sim_require_bulk({sized}); kopt_sim_bulk_store({sized});"
        case [space, "global", how], (to, source, size, barrier) if (
            space in _TO_SHARED and how == _COUNTED
        ):
            count, state = values.read(size, "u32"), values.shared(barrier)
            sized = f"{values.shared(to)}, {values.generic(source, 'const void*')}, {count}"
            loaded = f"kopt_sim_bulk_load({sized}, {count}, {state});"
            return f"kopt_sim_require_bulk({sized}); {loaded}"
        case ["tensor", rank, *rest], _ if rank in _RANKS:
            return _tile(one, [word for word in rest if word != "tile"], given, values)
        case _:
            raise _unknown(one)


def _tile(one: PtxInstruction, words: list[str], given: tuple[str, ...], values: Values) -> str:
    """Return the copy of a tile of a tensor map."""
    match words, given:
        case [space, "global", how], (shared, tile, barrier) if (
            space in _TO_SHARED and how == _COUNTED
        ):
            call, state = "kopt_sim_tile_load", f", {values.shared(barrier)}"
        case ["global", "shared::cta", "bulk_group"], (tile, shared):
            call, state = "kopt_sim_tile_store", ""
        case _:
            raise _unknown(one)
    named = _TILE.fullmatch(tile)
    start = named[2].split(",") if named else []
    if named is None or len(start) != _RANKS[one.modifiers[3]]:
        raise _unknown(one)
    places = f"{values.shared(shared)}, {values.generic(f'[{named[1]}]', 'const void*')}"
    numbers = ", ".join(values.read(text, "s32") for text in start)
    begun = f"const int kopt_ptx_start[] = {{{numbers}}};"
    return f"{{ {begun} {call}({places}{state}, kopt_ptx_start); }}"


def _unknown(one: PtxInstruction) -> PtxError:
    return PtxError(f"cp.{'.'.join(one.modifiers)}")


COPIES: dict[str, Handler] = {"cp": _copy}
"""Handlers by opcode."""
