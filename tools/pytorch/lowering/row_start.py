"""The first statements of a kernel that makes rows: lengths, what is loaded at once, waits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .buffers import Grid
from .cuda_types import STORED
from .row_body import Pack, RowBody, RowNumber
from .row_schedule import Schedule
from .sizes import Size

_PACK_BYTES, _MOST_IN_PACK = 16, 8
_KEPT_BYTES = 256
"""What a thread keeps of its rows at most, in registers."""
_SIZES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2}


@dataclass(frozen=True)
class Span:
    """Neighbours in memory that several threads make: a row, or a tile of a tensor."""

    first: str
    """The place of the first element of a thread's pack number `i`."""
    length: str
    """The number of elements, or the name of it."""
    items: str
    """How many packs each thread has."""
    shared: str
    """The start of places that other spans read, too."""
    threads: str = ""
    """How many threads share a span of constant length; empty where it is not constant."""

    @property
    def inside(self) -> str:
        """The condition under which the pack number `i` of a thread is part of the span."""
        return f"{'EXACT || ' if self.threads else ''}first < {self.length}"

    def read(self, body: RowBody, pack: Pack, schedule: Schedule) -> str:
        """Return the load of a pack; what is read again stays in the caches."""
        is_shared = pack.buffer.is_static or pack.base.startswith(self.shared)
        call = "read_streaming" if schedule.streams and not is_shared else "read_pack"
        return f"op::{call}<VEC>({body.pointer(pack.buffer)} + {pack.base})"


def row_span(schedule: Schedule, length: Size) -> Span:
    """Return the span of a row of so many elements."""
    threads, place = ("SPLIT * ROW", "(i * SPLIT + rank)") if schedule.is_split else ("ROW", "i")
    items = f"({length.factor} + {threads} * VEC - 1) / ({threads} * VEC)"
    return Span(f"({place} * ROW + lane) * VEC", length.code, items, "first", threads)


def counted(rows: Size) -> str:
    """Return how a kernel names its number of rows, which is a parameter where it varies."""
    return "rows" if rows.literal is None else rows.code


@dataclass(frozen=True)
class RowStart:
    """What comes before the first loop of a kernel."""

    schedule: Schedule
    span: Span
    states: tuple[str, ...]
    """C++ types of what the blocks of a cluster send each other, in their order."""
    skipped: tuple[str, ...] = ()
    """Statements that end threads whose row is not made."""

    def grid(self, rows: Size) -> Grid:
        """Return the launch."""
        schedule = self.schedule
        blocks = f"ceil_div({rows.header}, ROWS)"
        if schedule.is_split:
            blocks += " * SPLIT"
        numbers = (("rows", rows.header),) if counted(rows) == "rows" else ()
        bounds = "ROW * ROWS, MIN_BLOCKS" if schedule.is_bounded else "ROW * ROWS"
        options = ["cluster: SPLIT"] if schedule.is_split and self.states else []
        options += ["pdl: true"] if schedule.is_dependent else []
        return Grid(
            blocks,
            "ROW * ROWS",
            f"__launch_bounds__({bounds}) ",
            numbers=numbers,
            options=tuple(options),
        )

    def lines(self, body: RowBody, written: Sequence[str]) -> list[str]:
        """Return the statements.

        Args:
            body: The loops, which are written already.
            written: Dtypes of the outputs that are whole rows.
        """
        packs = list(body.packs.values())
        lines = [
            *self._lengths(body, packs, written),
            *self._exchange(),
            *self._loads(body, packs),
        ]
        return [f"  {line}" for line in lines]

    def _lengths(
        self, body: RowBody, packs: Sequence[Pack], written: Sequence[str]
    ) -> Iterator[str]:
        touched = [*(one.buffer.dtype for one in packs), *written]
        least = min((_SIZES.get(one, 1) for one in touched), default=4)
        most = min(_MOST_IN_PACK, _PACK_BYTES // least)
        divisors = sorted({self.span.length, *body.divisors})
        yield f"constexpr int VEC = op::pack_length({most}, {{{', '.join(divisors)}}});"
        yield f"constexpr int ITEMS = {self.span.items};"
        if self.span.threads:
            exact = f"{self.span.length} == ITEMS * {self.span.threads} * VEC"
            yield f"constexpr bool EXACT = {exact};  // all threads have as many packs"
        if packs or any("KEEPS" in line for line in body.lines):
            taken = sum(_SIZES.get(one.buffer.dtype, 1) for one in packs) or _SIZES["float32"]
            yield f"constexpr bool KEEPS = ITEMS * VEC * {taken} <= {_KEPT_BYTES};"
            for one in packs:
                kept = f"{one.name}_kept[KEEPS ? ITEMS : 1]"
                yield f"op::Pack<{STORED[one.buffer.dtype]}, VEC> {kept};"

    def _exchange(self) -> Iterator[str]:
        """Yield the mbarriers that count what the other blocks of the cluster send."""
        if not (self.schedule.is_split and self.states):
            return
        yield f"__shared__ kopt::mbarrier_t arrived[{len(self.states)}];"
        yield "if (threadIdx.x == 0) {"
        for number, state in enumerate(self.states):
            yield f"  kopt::mbarrier_init(&arrived[{number}], 1);"
            yield (
                f"  kopt::mbarrier_arrive_expect_tx(&arrived[{number}],"
                f" SPLIT * ROW / 32 * sizeof(op::Words<{state}>));"
            )
        yield "  kopt::fence_mbarrier_init();"
        yield "}"
        yield "__syncthreads();  // the mbarriers are there"
        yield "kopt::cluster_arrive_relaxed();"

    def _loads(self, body: RowBody, packs: Sequence[Pack]) -> Iterator[str]:
        """Yield the loads of all packs, those of weights before the wait for the kernel before."""
        is_dependent = self.schedule.is_dependent
        if is_dependent:
            yield "if (TRIGGER == 0) kopt::griddepcontrol_launch_dependents();"
        early = [
            one
            for one in packs
            if is_dependent and one.buffer.is_static and one.buffer.kind == "in"
            if body.is_known_early(one)
        ]
        static = [one for one in body.numbers.values() if is_dependent and one.buffer.is_static]
        yield from self._numbers(body, static)
        yield from self._kept(body, early)
        if self.schedule.is_split and self.states:
            yield "kopt::cluster_wait();  // the mbarriers of the other blocks are there, too"
        if is_dependent:
            yield "kopt::griddepcontrol_wait();"
        yield from self.skipped
        yield from self._numbers(body, [one for one in body.numbers.values() if one not in static])
        yield from self._kept(body, [one for one in packs if one not in early])
        if is_dependent:
            yield "if (TRIGGER == 1) kopt::griddepcontrol_launch_dependents();"

    def _numbers(self, body: RowBody, numbers: Sequence[RowNumber]) -> Iterator[str]:
        for one in numbers:
            element = f"{body.pointer(one.buffer)}[{one.position}]"
            yield f"const {STORED[one.buffer.dtype]} {one.name} = {element};"

    def _kept(self, body: RowBody, packs: Sequence[Pack]) -> Iterator[str]:
        if not packs:
            return
        yield "if constexpr (KEEPS) {"
        yield "  #pragma unroll"
        yield "  for (int i = 0; i < ITEMS; ++i) {"
        yield f"    const int first = {self.span.first};"
        yield f"    if ({self.span.inside}) {{"
        for line in body.before("\n".join(one.base for one in packs)):
            yield f"      {line}"
        for one in packs:
            read = self.span.read(body, one, self.schedule)
            yield f"      {one.name}_kept[KEEPS ? i : 0] = {read};"
        yield "    }"
        yield "  }"
        yield "}"
