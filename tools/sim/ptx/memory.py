"""Loads, stores, atomics, asynchronous copies and mbarriers of PTX as C++.

Source:
    https://docs.nvidia.com/cuda/parallel-thread-execution/, section 9.7.9 and 9.7.13.
"""

from .handlers import Handler, operands, type_of
from .ptx_text import PtxError, PtxInstruction
from .values import BITS, TYPES, Values, elements, widened

_SPACES = frozenset({"global", "shared", "shared::cta", "const"})
_SCOPES = frozenset({"cta", "cluster", "gpu", "sys"})
_ORDERS = frozenset({"weak", "volatile", "relaxed", "acquire", "release", "acq_rel"})
_HINTS = frozenset({"nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt"})
_COUNTED = "mbarrier::complete_tx::bytes"
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_ATOMICS = {
    **{"add": "Add", "min": "Min", "max": "Max", "and": "And", "or": "Or", "xor": "Xor"},
    **{"exch": "Exch", "inc": "Inc", "dec": "Dec"},
}
_ATOMIC_TYPES = {
    **{"b32": "unsigned", "u32": "unsigned", "s32": "int", "f32": "float", "f64": "double"},
    **{"b64": "unsigned long long", "u64": "unsigned long long"},
}


def _is_hint(modifier: str) -> bool:
    return modifier in _HINTS or modifier.startswith(("L1::", "L2::"))


def _access(one: PtxInstruction) -> tuple[int, str, str]:
    """Return the elements, the type and the order of a load or store.

    Raises:
        PtxError: It has a modifier that is not known.
    """
    kind = type_of(one)
    count, order = 1, ""
    for modifier in one.modifiers[:-1]:
        if modifier in _VECTORS:
            count = _VECTORS[modifier]
        elif modifier in _ORDERS:
            order = "" if modifier == "weak" else modifier
        elif modifier not in _SPACES | _SCOPES and not _is_hint(modifier):
            raise PtxError(f"{one.opcode}.{modifier}")
    if kind == "pred" or count * BITS[kind] > 256:
        raise PtxError(f"{one.opcode} of {count} {kind}")
    if order and count > 1:
        raise PtxError(f"{one.opcode}.{order} of a vector")
    _refuse_narrow_scope(one)
    return count, kind, order


def _refuse_narrow_scope(one: PtxInstruction) -> None:
    """Refuse an order among the threads of a block or cluster alone, in memory that others reach.

    The simulator would take it for an order among all.
    """
    if {"cta", "cluster"} & set(one.modifiers) and not _is_shared(one):
        raise PtxError(f"{one.opcode} of a narrow scope")


def _is_shared(one: PtxInstruction) -> bool:
    return bool({"shared", "shared::cta"} & set(one.modifiers))


def _elements(one: PtxInstruction, operand: int, count: int) -> list[str]:
    """Return the elements that a load or store names, behind which a policy may stand."""
    found = elements(operands(one, 2, 3)[operand])
    if len(found) != count:
        raise PtxError(f"{one.opcode} of {count} elements with {len(found)}")
    return found


def _place(one: PtxInstruction, values: Values, operand: str, kind: str) -> str:
    return (values.shared if _is_shared(one) else values.generic)(operand, kind)


def _load(one: PtxInstruction, values: Values) -> str:
    """ld; a cache policy behind the address is left out."""
    count, kind, order = _access(one)
    to = _elements(one, 0, count)
    address = _place(one, values, one.operands[1], "const void*")
    name = TYPES[kind]
    if order:
        value = f"kopt_sim::ptx_load_volatile<{name}>({address})"
        fence = " __threadfence();" if order == "acquire" else ""
        return values.write(to[0], widened(value, kind)) + fence
    size = count * BITS[kind] // 8
    parts = (
        values.write(part, widened(f"kopt_ptx_vector.get<{name}>({n})", kind))
        for n, part in enumerate(to)
    )
    loaded = f"const auto kopt_ptx_vector = kopt_sim::ptx_load<{size}>({address});"
    return f"{{ {loaded} {' '.join(parts)} }}"


def _store(one: PtxInstruction, values: Values) -> str:
    """st; a cache policy behind the value is left out."""
    count, kind, order = _access(one)
    sources = _elements(one, 1, count)
    address = _place(one, values, one.operands[0], "void*")
    if order:
        fence = "__threadfence(); " if order == "release" else ""
        value = values.read(sources[0], kind)
        return f"{fence}kopt_sim::ptx_store_volatile<{TYPES[kind]}>({address}, {value});"
    size = count * BITS[kind] // 8
    parts = (
        f"kopt_ptx_vector.set<{TYPES[kind]}>({n}, {values.read(part, kind)});"
        for n, part in enumerate(sources)
    )
    stored = f"kopt_sim::ptx_store<{size}>({address}, kopt_ptx_vector);"
    return f"{{ kopt_sim::PtxVector<{size}> kopt_ptx_vector; {' '.join(parts)} {stored} }}"


def _atomic(one: PtxInstruction, values: Values) -> str:
    """Atom and red, of one element; with an order they fence on both sides."""
    _refuse_narrow_scope(one)
    kind = one.modifiers[-1] if one.modifiers else ""
    known = _SPACES | _SCOPES | _ORDERS
    names = [word for word in one.modifiers[:-1] if word not in known and not _is_hint(word)]
    is_red = one.opcode == "red"
    to, *sources = ("_", *operands(one, 2)) if is_red else operands(one, 3, 4)
    if kind not in _ATOMIC_TYPES or len(names) != 1 or "volatile" in one.modifiers:
        raise PtxError(f"{one.opcode}.{'.'.join(one.modifiers)}")
    address, *given = sources
    pointer = _place(one, values, address, f"{_ATOMIC_TYPES[kind]}*")
    words = ", ".join(values.read(text, kind) for text in given)
    if names == ["cas"] and len(given) == 2 and not is_red:
        call = f"atomicCAS({pointer}, {words})"
    elif names[0] in _ATOMICS and len(given) == 1:
        call = f"atomic{_ATOMICS[names[0]]}({pointer}, {words})"
    else:
        raise PtxError(f"{one.opcode}.{'.'.join(one.modifiers)}")
    ordered = any(word in ("acquire", "release", "acq_rel") for word in one.modifiers)
    fence = "__threadfence();" if ordered else ""
    return f"{fence} {values.write(to, call)} {fence}".strip()


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
            map(_is_hint, hints)
        ):
            return _async_copy(one, values)
        case ("async", "bulk", "commit_group"):
            return "kopt_sim_bulk_commit();"
        case ("async", "bulk", "wait_group", *_):
            return f"kopt_sim_bulk_wait({values.read(operands(one, 1)[0], 'u32')});"
        case ("async", "bulk", "global", "shared::cta", "bulk_group"):
            to, source, size = operands(one, 3)
            places = f"{values.generic(to, 'void*')}, {values.shared(source, 'const void*')}"
            words = f"{places}, {values.read(size, 'u32')}"
            return f"kopt_sim_require_bulk({words}); kopt_sim_bulk_store({words});"
        case (
            "async",
            "bulk",
            "shared::cluster" | "shared::cta",
            "global",
            "mbarrier::complete_tx::bytes",
        ):
            to, source, size, barrier = operands(one, 4)
            places = f"{values.shared(to)}, {values.generic(source, 'const void*')}"
            words = f"{places}, {values.read(size, 'u32')}"
            count, state = values.read(size, "u32"), values.shared(barrier)
            loaded = f"kopt_sim_bulk_load({words}, {count}, {state});"
            return f"kopt_sim_require_bulk({words}); {loaded}"
        case _:
            raise PtxError(f"cp.{'.'.join(one.modifiers)}")


def _async_copy(one: PtxInstruction, values: Values) -> str:
    to, source, size, *more = operands(one, 3, 4)
    if any("L2::cache_hint" in word for word in one.modifiers):
        raise PtxError("cp.async with a cache policy")
    if "cg" in one.modifiers and size.isdigit() and size != "16":
        raise PtxError(f"cp.async.cg of {size} bytes")
    given = values.read(more[0] if more else size, "u32")
    places = f"{values.shared(to)}, {values.generic(source, 'const void*')}"
    return (
        'kopt_sim_cpu_body("cp.async");'
        f" kopt_sim_async_copy({places}, {values.read(size, 'u32')}, {given});"
    )


def _mbarrier(one: PtxInstruction, values: Values) -> str:
    """mbarrier.init, arrive and try_wait.parity, which waits until the phase is complete."""
    words = [word for word in one.modifiers if word not in _SPACES | _SCOPES]
    words = [word for word in words if word not in ("release", "acquire", "b64")]
    match words, one.operands:
        case ["init"], (barrier, count):
            state = values.shared(barrier)
            return f"kopt_sim_mbarrier_init({state}, {values.read(count, 'u32')});"
        case ["arrive"], ("_", barrier):
            return f"kopt_sim_mbarrier_arrive({values.shared(barrier)}, 0);"
        case ["arrive", "expect_tx"], ("_", barrier, size):
            state = values.shared(barrier)
            return f"kopt_sim_mbarrier_arrive({state}, {values.read(size, 'u32')});"
        case ["try_wait", "parity"], (to, barrier, parity, *_):
            state = values.shared(barrier)
            waited = f"kopt_sim_mbarrier_wait({state}, {values.read(parity, 'u32')}, __LINE__);"
            return f"{waited} {values.write(to, 'true')}"
        case _:
            raise PtxError(f"mbarrier.{'.'.join(one.modifiers)}")


def _address(one: PtxInstruction, values: Values) -> str:
    """cvta, with a generic address on one side: all spaces have the same addresses here."""
    type_of(one, "u32", "u64")
    to, source = operands(one, 2)
    return values.write(to, values.read(source, "u64"))


def _nothing(one: PtxInstruction, values: Values) -> str:
    """prefetch, applypriority, createpolicy, setmaxnreg: no value depends on them."""
    if one.opcode == "createpolicy":
        return values.write(operands(one, 1, 2, 4)[0], "std::uint64_t{0}")
    return ""


MEMORY: dict[str, Handler] = {
    "ld": _load,
    "st": _store,
    **dict.fromkeys(("atom", "red"), _atomic),
    "cp": _copy,
    "mbarrier": _mbarrier,
    "cvta": _address,
    **dict.fromkeys(
        ("prefetch", "prefetchu", "applypriority", "createpolicy", "setmaxnreg"), _nothing
    ),
}
"""Handlers by opcode."""
