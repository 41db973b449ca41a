"""Barriers, fences, shuffles and votes of PTX as C++.

Source:
    https://docs.nvidia.com/cuda/parallel-thread-execution/, section 9.7.13.
"""

from .handlers import Handler, operands
from .ptx_text import PtxError, PtxInstruction
from .values import Values


def _barrier(one: PtxInstruction, values: Values) -> str:
    """bar.sync and bar.arrive, bar.warp.sync, the two steps of a cluster barrier."""
    words = [word for word in one.modifiers if word not in ("aligned", "cta")]
    match words, one.operands:
        case ["sync"], ("0",):
            return "__syncthreads();"
        case ["sync"], (number, *count) if len(count) <= 1:
            return _named(one, values, number, count[0] if count else "0")
        case ["arrive"], (number, count):
            return _named(one, values, number, count)
        case ["red", *how], (to, number, *count, vote) if len(count) <= 1:
            return _vote_at(one, values, how, (to, number, count[0] if count else "0", vote))
        case ["warp", "sync"], (mask,):
            return f"__syncwarp({values.read(mask, 'u32')});"
        case ["cluster", "arrive", *order], () if order in ([], ["release"]):
            return "kopt_sim_cluster_arrive(__LINE__);"
        case ["cluster", "arrive", "relaxed"], ():
            return "kopt_sim_cluster_arrive_relaxed(__LINE__);"
        case ["cluster", "wait", *order], () if order in ([], ["acquire"]):
            return "kopt_sim_cluster_wait(__LINE__);"
        case _:
            raise PtxError(f"{one.opcode}.{'.'.join(one.modifiers)} {', '.join(one.operands)}")


def _named(one: PtxInstruction, values: Values, number: str, count: str) -> str:
    words = f"{values.read(number, 'u32')}, {values.read(count, 'u32')}"
    waits = "true" if "sync" in one.modifiers else "false"
    return f"kopt_sim_named_barrier({words}, {waits}, {_aligned(one)}, __LINE__);"


def _vote_at(
    one: PtxInstruction, values: Values, how: list[str], given: tuple[str, str, str, str]
) -> str:
    """Return bar.red: all threads of a barrier give a predicate, and get the same answer."""
    to, number, count, vote = given
    predicate, aligned = values.predicate(vote), _aligned(one)
    match how:
        case ["popc", "u32"]:
            shown = "{}"
        case ["or", "pred"]:
            shown = "{} != 0"
        case ["and", "pred"]:
            shown, predicate = "{} == 0", f"!({predicate})"
        case _:
            raise PtxError(f"{one.opcode}.{'.'.join(one.modifiers)}")
    where = f"{values.read(number, 'u32')}, {values.read(count, 'u32')}"
    asked = f"kopt_sim_named_vote({where}, {predicate}, {aligned}, __LINE__)"
    return values.write(to, shown.format(asked))


def _aligned(one: PtxInstruction) -> str:
    return "true" if one.opcode == "bar" or "aligned" in one.modifiers else "false"


def _fence(one: PtxInstruction, _: Values) -> str:
    """Membar and fence."""
    scopes = {"cta": "__threadfence_block();", "gpu": "__threadfence();", "gl": "__threadfence();"}
    scopes |= {"cluster": "__threadfence();", "sys": "__threadfence_system();"}
    match one.modifiers:
        case ("mbarrier_init", *_):
            return ""
        case ("proxy", "async", *space) if space in ([], ["shared::cta"]):
            return "kopt_sim_proxy_fence();"
        case (*order, scope) if scope in scopes and order in ([], ["acq_rel"], ["sc"]):
            return scopes[scope]
        case _:
            raise PtxError(f"{one.opcode}.{'.'.join(one.modifiers)}")


def _dependency(one: PtxInstruction, _: Values) -> str:
    """Griddepcontrol."""
    match one.modifiers:
        case ("wait",):
            return 'kopt_sim_cpu_body("griddepcontrol.wait"); kopt_sim_wait_for_producer();'
        case ("launch_dependents",):
            return 'kopt_sim_cpu_body("griddepcontrol.launch_dependents");'
        case _:
            raise PtxError(f"griddepcontrol.{'.'.join(one.modifiers)}")


def _exchange(one: PtxInstruction, values: Values) -> str:
    """shfl.sync, of 32 bits, with or without the predicate."""
    mode = one.modifiers[1] if len(one.modifiers) == 3 and one.modifiers[0] == "sync" else ""
    if mode not in ("idx", "up", "down", "bfly") or one.modifiers[2] != "b32":
        raise PtxError(f"shfl.{'.'.join(one.modifiers)}")
    to, *sources = operands(one, 5)
    words = ", ".join(values.read(text, "u32") for text in sources)
    register, _, predicate = to.partition("|")
    within = values.write(predicate, "kopt_ptx_got.is_within") if predicate else ""
    got = f"const auto kopt_ptx_got = kopt_sim::ptx_shuffle('{mode[0]}', {words});"
    return f"{{ {got} {values.write(register, 'kopt_ptx_got.value')} {within} }}"


def _vote(one: PtxInstruction, values: Values) -> str:
    """vote.sync.{ballot,any,all}, match.any.sync, activemask, redux.sync, elect.sync."""
    match (one.opcode, *one.modifiers), one.operands:
        case ("vote", "sync", "ballot", "b32"), (to, predicate, mask):
            asked = f"{values.read(mask, 'u32')}, {values.predicate(predicate)}"
            return values.write(to, f"__ballot_sync({asked})")
        case ("vote", "sync", "any" | "all" as how, "pred"), (to, predicate, mask):
            asked = f"{values.read(mask, 'u32')}, {values.predicate(predicate)}"
            return values.write(to, f"__{how}_sync({asked}) != 0")
        case ("match", "any", "sync", "b32"), (to, source, mask):
            asked = f"{values.read(mask, 'u32')}, {values.read(source, 'u32')}"
            return values.write(to, f"__match_any_sync({asked})")
        case ("activemask", "b32"), (to,):
            return values.write(to, "__activemask()")
        case ("redux", "sync", how, "u32" | "s32" | "b32" as kind), (to, source, mask) if how in (
            "add",
            "min",
            "max",
            "and",
            "or",
            "xor",
        ):
            asked = f"{values.read(mask, 'u32')}, {values.read(source, kind)}"
            return values.write(to, f"__reduce_{how}_sync({asked})")
        case ("elect", "sync"), (to, mask) if "|" in to:
            register, _, predicate = to.partition("|")
            found = f"kopt_sim::ptx_leader({values.read(mask, 'u32')})"
            leader = f"const unsigned kopt_ptx_leader = {found};"
            chosen = values.write(predicate, "kopt_ptx_leader == kopt_sim_lane()")
            return f"{{ {leader} {values.write(register, 'kopt_ptx_leader')} {chosen} }}"
        case _:
            raise PtxError(f"{one.opcode}.{'.'.join(one.modifiers)}")


GROUPS: dict[str, Handler] = {
    **dict.fromkeys(("bar", "barrier"), _barrier),
    **dict.fromkeys(("membar", "fence"), _fence),
    "griddepcontrol": _dependency,
    "shfl": _exchange,
    **dict.fromkeys(("vote", "match", "activemask", "redux", "elect"), _vote),
    "nanosleep": lambda one, values: f"__nanosleep({values.read(operands(one, 1)[0], 'u32')});",
    "trap": lambda one, values: "__trap();",
}
"""Handlers by opcode."""
