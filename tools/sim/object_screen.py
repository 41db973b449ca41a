"""What a candidate's CPU object may contain before it is linked and run.

The sandbox limits what a hostile object can do; this screen refuses the ways in: code that runs
before `main`, inline assembly, and calls of anything but the simulator's runtime and libm.

It also refuses memory accesses without a hook, found in GCC's own dump. -fsanitize=thread
instruments assignments; a struct that a call which is not inlined takes or returns by value is
loaded or stored by the call, where no hook sees it.
"""

import re
from collections.abc import Iterable

from elftools.elf.elffile import ELFFile

from .symbol_table import INDIRECT, UNDEFINED, read_symbols
from .unit import UNIT_NAME

# libm's names that device code may use; kopt_sim/math.h builds the intrinsics on them.
_LIBM = frozenset(
    re.findall(
        r"\w+",
        """acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2
    expm1
    fabs fdim floor fma fmax fmin fmod hypot ilogb ldexp lgamma llrint llround log log10
    log1p log2 logb lrint lround nearbyint nextafter pow remainder rint round scalbln
    scalbn sin sincos sinh sqrt tan tanh tgamma trunc j0 j1 y0 y1""",
    )
)
STORING_LIBM = ("frexp", "frexpf", "modf", "modff", "remquo", "remquof", "sincos", "sincosf")
"""libm's functions that store through a pointer, the last two called by g++ itself: the linker
exchanges them for the runtime's, which check the store (runtime/libm_stores.cpp)."""
# libgcc's: popcount (x86-64 has it only as an extension) and 128-bit division.
_LIBGCC = frozenset(("__popcountdi2", "__divti3", "__modti3", "__udivti3", "__umodti3"))
_RUNTIME = frozenset(
    re.findall(
        r"\w+",
        """threadIdx blockIdx blockDim gridDim warpSize _GLOBAL_OFFSET_TABLE_ kopt_sim_barrier
    kopt_sim_exchange kopt_sim_shuffle kopt_sim_sync_warp kopt_sim_active_mask kopt_sim_lane
    kopt_sim_fence kopt_sim_atomic kopt_sim_rechecks kopt_sim_grid_barrier kopt_sim_cluster_barrier
    kopt_sim_async_copy kopt_sim_async_commit kopt_sim_async_wait kopt_sim_yield kopt_sim_trap
    __assert_fail kopt_sim_cpu_body kopt_sim_clock kopt_sim_memcpy kopt_sim_memmove kopt_sim_memset
    kopt_sim_mbarrier_init kopt_sim_mbarrier_arrive kopt_sim_mbarrier_wait kopt_sim_bulk_load
    kopt_sim_mbarrier_arrive_many kopt_sim_mbarrier_expect kopt_sim_mbarrier_complete
    kopt_sim_mbarrier_invalidate kopt_sim_mbarrier_try kopt_sim_async_arrive
    kopt_sim_to_shared kopt_sim_from_shared
    kopt_sim_multicast kopt_sim_tile_load kopt_sim_tile_store kopt_sim_bulk_store
    kopt_sim_bulk_commit kopt_sim_bulk_wait kopt_sim_require_bulk kopt_sim_proxy_fence
    kopt_sim_require_aligned
    kopt_sim_cluster_rank kopt_sim_cluster_size
    kopt_sim_cluster_arrive kopt_sim_cluster_arrive_relaxed kopt_sim_cluster_wait
    kopt_sim_named_barrier kopt_sim_named_vote kopt_sim_mma kopt_sim_meet_warp
    kopt_sim_load_matrices kopt_sim_store_matrices kopt_sim_transpose_matrix
    kopt_sim_warpgroup_fence kopt_sim_warpgroup_product kopt_sim_warpgroup_commit
    kopt_sim_warpgroup_wait kopt_sim_map_shared kopt_sim_shared_rank kopt_sim_store_async
    kopt_sim_wait_for_producer kopt_sim_tensor_allocate kopt_sim_tensor_free
    kopt_sim_tensor_relinquish kopt_sim_tensor_move kopt_sim_tensor_wait kopt_sim_tensor_fence
    kopt_sim_tensor_product kopt_sim_tensor_copy kopt_sim_tensor_commit
    __tsan_init __tsan_func_entry __tsan_func_exit __tsan_read_range __tsan_write_range
    __tsan_vptr_update __tsan_vptr_read
    __ubsan_handle_type_mismatch_v1 __ubsan_handle_add_overflow __ubsan_handle_sub_overflow
    __ubsan_handle_mul_overflow __ubsan_handle_negate_overflow __ubsan_handle_divrem_overflow
    __tsan_atomic8_load __cxa_guard_acquire __cxa_guard_release""",
    )
)
_ACCESS_HOOK = re.compile(r"__tsan_(unaligned_|volatile_)?(read|write)(1|2|4|8|16)$")
_ANY_WIDTH = {"kopt_sim_memcpy", "kopt_sim_memmove", "kopt_sim_memset", "kopt_sim_atomic"}
# What -fsanitize=thread itself adds: a constructor that calls __tsan_init.
_OWN_CONSTRUCTORS = ".init_array.00099"
_OWN_NAME = re.compile(r"(__tsan_|__ubsan_|kopt_sim_(?!entry_\d+$))")
# Anything else may run code, or change how the program is loaded (.init, .interp, .preinit_array).
_SECTION = re.compile(
    r"(\.rela?)?(\.text|\.rodata|\.data|\.bss|\.debug_|\.eh_frame$|\.gcc_except_table"
    r"|\.init_array\.00099$)|\.(note|comment|group|symtab|strtab|shstrtab)|$"
)
_INLINE_ASSEMBLY = re.compile(r"^#APP$", re.MULTILINE)
_SOURCE_FILE = re.compile(rf'^\s*\.file (\d+) "{re.escape(UNIT_NAME)}"', re.MULTILINE)
_LOCATION = re.compile(r"^\s*\.loc (\d+) (\d+) ", re.MULTILINE)


def inline_assembly_line(assembly: str) -> int | None:
    """Return the candidate's line of the first inline assembly in the `-S` output, or None.

    1 if it cannot be told, as for assembly in a header that is inlined into no line of its own.
    """
    marked = _INLINE_ASSEMBLY.search(assembly)
    if marked is None:
        return None
    own = _SOURCE_FILE.search(assembly)
    lines = [
        int(place[2])
        for place in _LOCATION.finditer(assembly, 0, marked.start())
        if own is not None and place[1] == own[1]
    ]
    return lines[-1] if lines else 1


def dynamic_shared_symbols(elf: ELFFile, names: frozenset[str]) -> tuple[str, ...]:
    """Return the undefined symbols that are `extern __shared__` arrays called `names`.

    An array declared inside a namespace has a mangled name that ends in its own.
    """
    return tuple(
        symbol
        for symbol in _undefined(elf)
        if symbol in names
        or (symbol.startswith("_ZN") and any(symbol.endswith(f"{len(n)}{n}E") for n in names))
    )


def screen_object(elf: ELFFile, dynamic_shared: Iterable[str]) -> str | None:
    """Return why the object is refused, or None."""
    for section in elf.iter_sections():
        name = str(section.name)
        if _SECTION.match(name) is None:
            return f"it puts something into the section {name!r}"
        if name.startswith((".init_array", ".ctors", ".preinit_array", ".fini_array", ".dtors")):
            own = name == _OWN_CONSTRUCTORS and section.data_size == elf.elfclass // 8
            if not own:
                return "it has static constructors or destructors: code outside of any kernel"
    for symbol in read_symbols(elf):
        if symbol.type == INDIRECT:
            return f"the code of {symbol.name!r} is chosen while the program is loaded"
        if symbol.section != UNDEFINED and _OWN_NAME.match(symbol.name):
            return f"it defines {symbol.name!r}, a name of the simulator's own"
    allowed = set(dynamic_shared)
    for name in _undefined(elf):
        if not (name in allowed or _is_allowed(name)):
            return f"it calls {name!r}, which the simulator does not offer to device code"
    return None


def narrowest_access(elf: ELFFile) -> int:
    """Return the bytes of the narrowest load or store that the object may make: 1, 2 or 4."""
    widths = {4}
    for name in _undefined(elf):
        hook = _ACCESS_HOOK.match(name)
        if hook is not None:
            widths.add(int(hook[3]))
        elif name in _ANY_WIDTH:
            widths.add(1)
    return min(widths)


def _is_allowed(name: str) -> bool:
    if name in _RUNTIME or name in _LIBGCC or name in STORING_LIBM or _ACCESS_HOOK.match(name):
        return True
    return name in _LIBM or (name[-1:] in "fl" and name[:-1] in _LIBM)


def _undefined(elf: ELFFile) -> list[str]:
    return [one.name for one in read_symbols(elf) if one.name and one.section == UNDEFINED]


DUMP_FLAG = "-fdump-tree-tsan-lineno=unit.tsan"
"""Makes g++ write the program, as it is right after instrumentation, into unit.tsan."""

_PLACE = re.compile(r"\[[^\[\]]*?:(\d+):\d+(?: discrim \d+)?\] ?")
_END = re.compile(r"\);(?: \[[\w ]+\])*$")  # some calls have a remark: [tail call]
_MEMORY = re.compile(r"\*|->|\bMEM\b|\[")
# Of constant size it becomes moves. The names without __builtin_ lead to the runtime (device.h).
_BLOCK_COPY = re.compile(r"\b__builtin_mem(?:cpy|move|set) \((?![^,]*&)[^,]*,(?![^,]*&)")
# Not calls; or they take pointers and numbers only, among them the text of an assertion. What
# begins with a dot is no call but an operation of g++'s own, on registers: .UBSAN_CHECK_ADD.
_UNHOOKED_CALLEES = ("__builtin_", "__assert_fail ", "if ", "switch ", ".")
_STATIC = re.compile(r"^ +static .*?([A-Za-z_][\w.]*)(?: \[.*)?;$")


def unhooked_line(dump: str) -> int | None:
    """Return the candidate's line of the first access without a hook, or None.

    Operands that lie on the thread's own stack need none.
    """
    own = f"[{UNIT_NAME}:"
    statics: set[str] = set()  # shared variables of the function at hand
    for text in dump.splitlines():
        if text.startswith(";; Function "):
            statics.clear()
        declared = _STATIC.match(text)
        if declared is not None:
            statics.add(declared[1])
        place = _PLACE.search(text)
        if own in text and _BLOCK_COPY.search(text):
            return int(place[1]) if place else 1
        for operand in _call_operands(_PLACE.sub("", text.strip())):
            in_memory = _MEMORY.search(operand) or operand.split(".")[0] in statics
            if in_memory and not operand.startswith("&"):
                return int(place[1]) if place else 1
    return None


def _call_operands(statement: str) -> list[str]:
    """Return what a call takes and where its result goes; [] for any other statement."""
    end = _END.search(statement)
    if end is None:
        return []
    depth, start = 1, end.start()
    while depth > 0 and start > 0:
        start -= 1
        depth += {")": 1, "(": -1}.get(statement[start], 0)
    result, assigned, callee = statement[:start].rpartition(" = ")
    if not callee.endswith(" ") or callee.startswith(_UNHOOKED_CALLEES):
        return []
    operands = [argument.strip() for argument in statement[start + 1 : end.start()].split(", ")]
    return [*operands, result] if assigned else operands
