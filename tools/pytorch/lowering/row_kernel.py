"""The kernel that makes rows: loads, reductions whose results all threads get, and stores."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from .body import Body
from .buffers import Buffer, Grid
from .cuda_types import NARROW_FLOATS, STORED, cast, computed, stored
from .folds import LARGEST, SUM, Fold
from .program import store
from .reduction import Reduction
from .reduction_kernels import added, sum_dtype
from .row_body import Pack, RowBody
from .row_schedule import Schedule
from .row_start import RowStart, first_in_pack, read_pack
from .sizes import ONE, Shape, product
from .values import Index, Pointwise, Value


class NotRowByRowError(Exception):
    """The function is not made row by row; lower it kernel by kernel."""


@dataclass(frozen=True, eq=False)
class RowResult:
    """A result of a reduction over the row that a thread works on."""

    reduction: Reduction
    dtype: str
    cost: int = 1

    @property
    def shape(self) -> Shape:
        """The shape of the reduction's results."""
        return self.reduction.shape

    @property
    def sources(self) -> frozenset[Buffer]:
        """The buffers that the reduced elements may be read from."""
        return self.reduction.value.sources

    def at(self, body: Body, index: Index) -> str:
        """Return its name.

        Raises:
            NotRowByRowError: `index` is in another row.
        """
        given = body.given.get(self)
        if given is None or given[0] != index:
            raise NotRowByRowError("a result of one row is needed in another")
        return given[1]


@dataclass(frozen=True)
class RowOutput:
    """What is stored where."""

    value: Value
    buffer: Buffer


@dataclass(frozen=True)
class RowPlan:
    """Rows, what is reduced in each, and what is stored."""

    outer: Shape
    inner: Shape
    results: tuple[tuple[RowResult, ...], ...]
    outputs: tuple[RowOutput, ...]
    schedule: Schedule


def write_rows(plan: RowPlan, body: Body) -> Grid:
    """Write the statements of the kernel.

    Raises:
        NotRowByRowError: An element depends on another row's reduction.
    """
    assert isinstance(body, RowBody)
    return _RowWriter(plan, body).write()


class _RowWriter:
    def __init__(self, plan: RowPlan, body: RowBody) -> None:
        self._plan = plan
        self._body = body
        self._rows = product(plan.outer)
        self._length = product(plan.inner)
        self._kept: Index = ()
        self._states: list[str] = []

    def write(self) -> Grid:
        body, plan, schedule = self._body, self._plan, self._plan.schedule
        body.line("const int lane = threadIdx.x % ROW;")
        block = "blockIdx.x"
        if schedule.is_split:
            body.line(
                "const int rank = blockIdx.x % SPLIT;  // which part of the row is this block's"
            )
            block = "blockIdx.x / SPLIT"
        body.line(f"const int place = {block} * ROWS + threadIdx.x / ROW;")
        rows = "rows" if self._rows.literal is None else self._rows.code
        body.line(f"const bool is_row = place < {rows};")
        body.line(f"const Index row = is_row ? place : {rows} - 1;")
        has_one_axis = sum(one.literal != 1 for one in plan.outer) <= 1
        self._kept = body.split("row" if has_one_axis else "int(row)", plan.outer)
        start = len(body.lines)
        body.begin()
        for number, results in enumerate(plan.results, 1):
            self._reduce(results, f"state{number}")
        wide = [one for one in plan.outputs if self._is_wide(one)]
        if wide:
            self._store(wide)
        narrow = [one for one in plan.outputs if not self._is_wide(one)]
        if narrow:
            is_first = "is_row && lane == 0" + (" && rank == 0" if schedule.is_split else "")
            with body.block(f"if ({is_first})"):
                for one in narrow:
                    index = self._narrow_index(one)
                    store(body, one.buffer, index, one.value.at(body, index))
        self._refuse_other_places(narrow)
        touched = [one.buffer.dtype for one in wide]
        opening = RowStart(schedule, self._length, bool(plan.results), tuple(self._states))
        body.lines[start:start] = opening.lines(body, touched)
        return self._grid(rows)

    def _grid(self, rows: str) -> Grid:
        schedule = self._plan.schedule
        blocks = f"ceil_div({self._rows.header}, ROWS)"
        if schedule.is_split:
            blocks += " * SPLIT"
        numbers = ((rows, self._rows.header),) if rows == "rows" else ()
        bounds = "ROW * ROWS, MIN_BLOCKS" if schedule.is_bounded else "ROW * ROWS"
        options = ["cluster: SPLIT"] if schedule.is_split and self._states else []
        options += ["pdl: true"] if schedule.is_dependent else []
        return Grid(
            blocks,
            "ROW * ROWS",
            f"__launch_bounds__({bounds}) ",
            numbers=numbers,
            options=tuple(options),
        )

    def _refuse_other_places(self, narrow: list[RowOutput]) -> None:
        """Refuse what is written in place unless each thread reads of it what it writes alone."""
        for output in self._plan.outputs:
            buffer, base = output.buffer, self._position("first")
            is_own = output not in narrow and self._body.reads_only(buffer, base)
            if buffer.kind == "inout" and not is_own:
                raise NotRowByRowError(f"{buffer.label} is read where other threads write it")

    def _is_wide(self, output: RowOutput) -> bool:
        rank = len(self._plan.outer) + len(self._plan.inner)
        narrow = (*self._plan.outer, *(ONE for _ in self._plan.inner))
        shape = output.buffer.shape
        return len(shape) == rank and (shape != narrow or self._length.literal == 1)

    def _narrow_index(self, output: RowOutput) -> Index:
        missing = len(output.buffer.shape) - len(self._kept)
        return (*self._kept, *("0" for _ in range(missing)))

    def _reduce(self, results: tuple[RowResult, ...], state: str) -> None:
        """Write the loops of a reduction, and name its results."""
        reduction, body = results[0].reduction, self._body
        fold, ctype = reduction.fold, reduction.element
        if fold.state == "Moments":
            total = self._folded(reduction, SUM, f"{state}_sum")
            count = f"{ctype}({self._length.code})"
            mean = body.let(ctype, f"{total}.total / {count}")
            squares = self._folded(
                reduction, SUM, f"{state}_squares", lambda x: f"({x} - {mean}) * ({x} - {mean})"
            )
            given = f"{{{count}, {mean}, {squares}.total}}"
            body.line(f"const op::Moments<{ctype}> {state} = {given};")
        elif fold.state == "Exponentials":
            largest = f"{self._folded(reduction, LARGEST, f'{state}_largest')}.best"
            total = self._folded(
                reduction, SUM, f"{state}_total", lambda x: f"std::exp({x} - {largest})"
            )
            given = f"{{{largest}, {total}.total}}"
            body.line(f"const op::Exponentials<{ctype}> {state} = {given};")
        else:
            self._folded(reduction, fold, state)
        for text, one in zip(fold.results, results, strict=False):
            code = re.sub(r"\bstate\b", state, text).format(T=ctype, count=self._length.code)
            made = ctype if one.dtype not in ("bool", "int64") else "auto"
            name = body.fresh("result")
            body.line(f"const {made} {name} = {code};")
            value = body.let(computed(one.dtype), cast(name, sum_dtype(ctype), one.dtype))
            body.given[one] = (reduction.result_index(self._kept), value)

    def _folded(
        self,
        reduction: Reduction,
        fold: Fold,
        state: str,
        prepare: Callable[[str], str] | None = None,
    ) -> str:
        """Write the loop that adds each element, prepared, to a state; return the state's name."""
        body, struct = self._body, f"op::{fold.state}<{reduction.element}>"
        body.line(f"{struct} {state} = {struct}::start();")

        def write(index: Index) -> None:
            text = added(reduction, body, index, "col")
            if prepare is not None:
                text = prepare(body.let(reduction.element, text))
            body.line(f"{state}.add({text});")

        self._loop(write)
        number = len(self._states)
        self._states.append(struct)
        if self._plan.schedule.is_split:
            body.line(f"{state} = op::merged_in_cluster<{number}>({state}, &arrived[{number}]);")
        else:
            body.line(f"{state} = op::merged_in_row<{number}>({state});")
        return state

    def _store(self, outputs: list[RowOutput]) -> None:
        body, streams = self._body, self._plan.schedule.streams
        names = {one.buffer: f"{one.buffer.label}_made" for one in outputs}

        def write(index: Index) -> None:
            for one in outputs:
                value = _unrounded(one).at(body, index)
                if one.buffer.dtype not in NARROW_FLOATS:
                    value = stored(one.buffer.dtype, value)
                body.line(f"{names[one.buffer]}.at[v] = {value};")

        before: list[str] = []
        after: list[str] = []
        call = "write_streaming" if streams else "write_pack"
        for buffer, name in names.items():
            is_rounded = buffer.dtype in NARROW_FLOATS
            made = "float" if is_rounded else STORED[buffer.dtype]
            before.append(f"op::Pack<{made}, VEC> {name};")
            given = f"op::to_{buffer.dtype}({name})" if is_rounded else name
            place = f"{body.pointer(buffer)} + {self._position('first')}"
            after.append(f"if (is_row) op::{call}({place}, {given});")
        self._loop(write, before, after)
        body.written.update(names)

    def _position(self, place: str) -> str:
        return f"row * {self._length.factor} + {place}"

    def _loop(
        self,
        write: Callable[[Index], None],
        before: list[str] | None = None,
        after: list[str] | None = None,
    ) -> None:
        """Write the loops over the row, and the loads of packs before the inner one."""
        body, plan = self._body, self._plan
        body.line("#pragma unroll")
        with body.block("for (int i = 0; i < ITEMS; ++i)"):
            body.line(f"const int first = {first_in_pack(plan.schedule)};")
            with body.block(f"if (first < {self._length.code})"):
                place = len(body.lines)
                with body.lanes(self._position("col")):
                    inner = body.split("col", plan.inner)
                    index = (*self._kept, *inner)
                    body.linear[index] = ((*plan.outer, *plan.inner), "at")
                    if len(inner) > 1:
                        body.linear[inner] = (plan.inner, "col")
                    write(index)
                text = "\n".join(body.lines[place:])
                used = [one for one in body.packs.values() if re.search(rf"\b{one.name}\b", text)]
                indent = "  " * 3
                body.lines[place:place] = [
                    *(f"{indent}{self._reading(one)}" for one in used),
                    *(f"{indent}{line}" for line in before or ()),
                ]
                for line in after or ():
                    body.line(line)

    def _reading(self, pack: Pack) -> str:
        read = read_pack(self._body, pack, self._plan.schedule)
        return f"const auto {pack.name} = KEEPS ? {pack.name}_kept[KEEPS ? i : 0] : {read};"


def _unrounded(output: RowOutput) -> Value:
    """Return what is stored, without a rounding that the store does: pairs are rounded at once."""
    value = output.value
    if isinstance(value, Pointwise) and value.rounds and value.dtype == output.buffer.dtype:
        (operand,) = value.operands
        return operand if computed(operand.dtype) == "float" else value
    return value
