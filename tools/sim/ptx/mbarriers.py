"""mbarriers of PTX as C++: barriers in shared memory that count arrivals and bytes.

Source:
    https://docs.nvidia.com/cuda/parallel-thread-execution/, section 9.7.13.15.
"""

from .handlers import Handler
from .ptx_text import PtxError, PtxInstruction
from .values import Values

_WHERE = frozenset({"shared", "shared::cta", "shared::cluster", "cta", "cluster"})
_ORDERS = frozenset({"release", "acquire", "relaxed"})


def _mbarrier(one: PtxInstruction, values: Values) -> str:
    """mbarrier; a try may fail although its phase is complete by then."""
    words = [word for word in one.modifiers if word not in _WHERE | _ORDERS]
    elsewhere = "shared::cluster" in one.modifiers  # others can be arrived at alone
    if words[-1:] != ["b64"] or (elsewhere and (words[0] != "arrive" or one.operands[0] != "_")):
        raise _unknown(one)
    match words[:-1], one.operands:
        case ["init"], (barrier, count):
            return f"kopt_sim_mbarrier_init({values.shared(barrier)}, {values.read(count, 'u32')});"
        case ["inval"], (barrier,):
            return f"kopt_sim_mbarrier_invalidate({values.shared(barrier)});"
        case ["expect_tx" | "complete_tx" as what], (barrier, size):
            name = f"kopt_sim_mbarrier_{what.removesuffix('_tx')}"
            return f"{name}({values.shared(barrier)}, {values.read(size, 'u32')});"
        case ["arrive" | "arrive_drop" as how], (state, barrier, *count) if len(count) <= 1:
            return _arrival(values, how, (state, barrier, count[0] if count else "1", "0"))
        case ["arrive" | "arrive_drop" as how, "expect_tx"], (state, barrier, size):
            return _arrival(values, how, (state, barrier, "1", size))
        case ["test_wait" | "try_wait", *by], (to, barrier, phase, *hint) if len(hint) <= 1:
            if by not in ([], ["parity"]) or (hint and words[0] == "test_wait"):
                raise _unknown(one)
            number = f"static_cast<unsigned>({values.read(phase, 'u32' if by else 'b64')})"
            tried = f"kopt_sim_mbarrier_try({values.shared(barrier)}, {number}, __LINE__)"
            return values.write(to, tried)
        case _:
            raise _unknown(one)


def _arrival(values: Values, how: str, given: tuple[str, str, str, str]) -> str:
    """Return an arrival at a barrier, so many times, that expects so many bytes."""
    state, barrier, count, size = given
    numbers = f"{values.read(count, 'u32')}, {values.read(size, 'u32')}"
    drops = "true" if how == "arrive_drop" else "false"
    come = f"kopt_sim_mbarrier_arrive_many({values.shared(barrier)}, {numbers}, {drops})"
    return values.write(state, come)


def _unknown(one: PtxInstruction) -> PtxError:
    return PtxError(f"mbarrier.{'.'.join(one.modifiers)}")


MBARRIERS: dict[str, Handler] = {"mbarrier": _mbarrier}
"""Handlers by opcode."""
