"""Loads, stores, atomics and conversions of addresses of PTX as C++.

Source:
    https://docs.nvidia.com/cuda/parallel-thread-execution/, sections 9.7.9 and 9.7.13.
"""

from .handlers import Handler, operands, type_of
from .ptx_text import PtxError, PtxInstruction
from .values import BITS, TYPES, Values, elements, widened

_SPACES = frozenset({"global", "shared", "shared::cta", "shared::cluster", "const"})
_SCOPES = frozenset({"cta", "cluster", "gpu", "sys"})
_ORDERS = frozenset({"weak", "volatile", "relaxed", "acquire", "release", "acq_rel"})
_HINTS = frozenset({"nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt"})
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
    return bool({"shared", "shared::cta", "shared::cluster"} & set(one.modifiers))


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


def _address(one: PtxInstruction, values: Values) -> str:
    """cvta: but for those of shared memory generic addresses are those of their space."""
    type_of(one, "u32", "u64")
    to, source = operands(one, 2)
    given = values.read(source, "u64")
    match one.modifiers[:-1]:
        case ("to", "shared" | "shared::cta"):
            return values.write(to, f"kopt_sim_to_shared(reinterpret_cast<const void*>({given}))")
        case ("shared" | "shared::cta",):
            return values.write(to, f"kopt_sim_from_shared({given})")
        case ("to", space) | (space,) if space in ("global", "const", "local", "param"):
            return values.write(to, given)
        case _:
            raise PtxError(f"cvta.{'.'.join(one.modifiers)}")


def _mapped(one: PtxInstruction, values: Values) -> str:
    """mapa: where another block of the cluster has a shared variable."""
    type_of(one, "u32", "u64")
    to, source, rank = operands(one, 3)
    given, number = values.read(source, "u64"), values.read(rank, "u32")
    match one.modifiers[:-1]:
        case ("shared::cluster",):
            mapped = f"kopt_sim_map_shared(kopt_sim_from_shared({given}), {number}, __LINE__)"
            return values.write(to, f"kopt_sim_to_shared({mapped})")
        case ():
            place = f"reinterpret_cast<const void*>({given})"
            return values.write(to, f"kopt_sim_map_shared({place}, {number}, __LINE__)")
        case _:
            raise PtxError(f"mapa.{'.'.join(one.modifiers)}")


def _nothing(one: PtxInstruction, values: Values) -> str:
    """prefetch, applypriority, createpolicy, setmaxnreg: no value depends on them."""
    if one.opcode == "createpolicy":
        return values.write(operands(one, 1, 2, 4)[0], "std::uint64_t{0}")
    return ""


MEMORY: dict[str, Handler] = {
    "ld": _load,
    "st": _store,
    **dict.fromkeys(("atom", "red"), _atomic),
    "cvta": _address,
    "mapa": _mapped,
    **dict.fromkeys(
        ("prefetch", "prefetchu", "applypriority", "createpolicy", "setmaxnreg"), _nothing
    ),
}
"""Handlers by opcode."""
