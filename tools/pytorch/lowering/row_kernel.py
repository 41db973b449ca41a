"""The kernel that makes rows: loads, reductions whose results all threads get, and stores."""

import re
from collections.abc import Callable

from .buffers import Grid
from .cuda_types import cast, computed
from .folds import LARGEST, SUM, Fold
from .pack_loop import MadePack, write_loop
from .program import store
from .reduction import Reduction
from .reduction_kernels import added, sum_dtype
from .row_body import RowBody
from .row_early import early_work
from .row_meanwhile import Meanwhile
from .row_plan import NotRowByRowError, RowOutput, RowPlan, RowResult
from .row_start import RowStart, counted, row_span
from .scale_tiles import store_scale
from .sizes import product
from .values import Index

_Folded = Callable[[Reduction, Fold, str, Callable[[str], str] | None], str]
"""Writes the loop that reduces prepared elements to a state, and returns the state's name."""


def write_rows(plan: RowPlan, body: RowBody) -> Grid:
    """Write the statements of the kernel.

    Raises:
        NotRowByRowError: An element depends on another row's reduction.
    """
    return _RowWriter(plan, body).write()


class _RowWriter:
    def __init__(self, plan: RowPlan, body: RowBody) -> None:
        self._plan = plan
        self._body = body
        self._rows = product(plan.outer)
        self._length = product(plan.inner)
        self._span = row_span(plan.schedule, self._length)
        self._kept: Index = ()
        self._states: list[str] = []
        self._meanwhile = Meanwhile(body, early_work(plan))

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
        rows = counted(self._rows)
        body.line(f"const bool is_row = ROWS == 1 || place < {rows};")
        body.line(f"const Index row = is_row ? place : {rows} - 1;")
        has_one_axis = sum(one.literal != 1 for one in plan.outer) <= 1
        self._kept = body.split("row" if has_one_axis else "int(row)", plan.outer)
        if len(self._kept) > 1:
            body.linear[self._kept] = (plan.outer, "row")
        start = len(body.lines)
        body.begin()
        skipped = self._skipped()
        for number, results in enumerate(plan.results, 1):
            index = results[0].reduction.result_index(self._kept)
            self._reduce(results, f"state{number}", index, self._folded)
        wide, narrow = plan.of("row", "codes"), plan.of("number")
        if wide or plan.groups:
            self._store(wide)
        if narrow:
            is_first = "is_row && lane == 0" + (" && rank == 0" if schedule.is_split else "")
            with body.block(f"if ({is_first})"):
                for one in narrow:
                    index = self._narrow_index(one)
                    store(body, one.buffer, index, one.value.at(body, index))
        self._refuse_other_places()
        touched = [one.buffer.dtype for one in wide]
        opening = RowStart(schedule, self._span, tuple(self._states), skipped)
        body.lines[start:start] = opening.lines(body, touched)
        return opening.grid(self._rows)

    def _skipped(self) -> tuple[str, ...]:
        """Return the statements by which threads end whose row is left as it is."""
        body, valid = self._body, self._plan.valid
        if valid is None:
            return ()
        place = len(body.lines)
        name = valid.at(body, (*self._kept, *("0" for _ in self._plan.inner)))
        lines = [line.strip() for line in body.lines[place:]]
        del body.lines[place:]
        return (*lines, f"if (!{name}) return;  // no thread of this row waits for another")

    def _refuse_other_places(self) -> None:
        """Refuse what is written in place unless each thread reads of it what it writes alone."""
        for output in self._plan.outputs:
            buffer, base = output.buffer, self._position("first")
            is_own = output.part == "row" and self._body.reads_only(buffer, base)
            if buffer.kind == "inout" and not is_own:
                raise NotRowByRowError(f"{buffer.label} is read where other threads write it")

    def _narrow_index(self, output: RowOutput) -> Index:
        missing = len(output.buffer.shape) - len(self._kept)
        return (*self._kept, *("0" for _ in range(missing)))

    def _reduce(
        self, results: tuple[RowResult, ...], state: str, index: Index, folded: _Folded
    ) -> None:
        """Write the loops of a reduction, and name its results, which are those at `index`."""
        reduction, body = results[0].reduction, self._body
        elements = product(reduction.inner).code
        fold, ctype = reduction.cheapest_fold, reduction.element
        if fold.state == "Moments":
            total = folded(reduction, SUM, f"{state}_sum", None)
            count = f"{ctype}({elements})"
            mean = body.let(ctype, f"{total}.total / {count}")
            squares = folded(
                reduction, SUM, f"{state}_squares", lambda x: f"({x} - {mean}) * ({x} - {mean})"
            )
            given = f"{{{count}, {mean}, {squares}.total}}"
            body.line(f"const op::Moments<{ctype}> {state} = {given};")
        elif fold.state == "Exponentials":
            largest = f"{folded(reduction, LARGEST, f'{state}_largest', None)}.best"
            total = folded(reduction, SUM, f"{state}_total", lambda x: f"std::exp({x} - {largest})")
            given = f"{{{largest}, {total}.total}}"
            body.line(f"const op::Exponentials<{ctype}> {state} = {given};")
        else:
            folded(reduction, fold, state, None)
        for text, one in zip(fold.results, results, strict=False):
            code = re.sub(r"\bstate\b", state, text).format(T=ctype, count=elements)
            made = ctype if one.dtype not in ("bool", "int64") else "auto"
            name = body.fresh("result")
            body.line(f"const {made} {name} = {code};")
            value = body.let(computed(one.dtype), cast(name, sum_dtype(ctype), one.dtype))
            body.given[one] = (index, value)

    def _folded(
        self, reduction: Reduction, fold: Fold, state: str, prepare: Callable[[str], str] | None
    ) -> str:
        """Write the loop that adds each element, prepared, to a state; return the state's name."""
        struct = self._begun(reduction, fold, state)
        self._loop(lambda: self._lanes(lambda index: self._add(reduction, state, index, prepare)))
        number = len(self._states)
        self._states.append(struct)
        call = f"{state} = op::merged_in_row<{number}>({state}"
        if self._plan.schedule.is_split:
            call = f"{state} = op::merged_in_cluster<{number}>({state}, &arrived[{number}]"
        if number == 0 and self._meanwhile.work:
            self._merge_meanwhile(call)
        else:
            self._body.line(f"{call});")
        return state

    def _merge_meanwhile(self, call: str) -> None:
        """Write the call that merges states, and what is done before they have come."""
        body, early = self._body, self._meanwhile.work
        self._meanwhile.declare()
        made = [MadePack(one, f"{one.buffer.label}_made") for one in early.stores]

        def content() -> None:
            self._write_packs(made)
            for number, results in enumerate(early.groups, 1):
                reduction, state = results[0].reduction, f"early_group{number}"
                self._folded_in_group(reduction, reduction.cheapest_fold, state, None)
                self._meanwhile.keep_group(number, state)

        with body.block(f"{call}, [&]", "});"), body.block("if constexpr (KEEPS)"):
            self._loop(content)
        self._meanwhile.is_done = True

    def _write_packs(self, made: list[MadePack]) -> None:
        """Write the loop over a pack that computes outputs, and what is kept; store them."""
        body, schedule = self._body, self._plan.schedule

        def compute(index: Index) -> None:
            if not self._meanwhile.is_done:
                self._meanwhile.keep_products(index)
            for one in made:
                one.compute(body, index)

        for one in made:
            one.begin(body)
        self._lanes(compute)
        for one in made:
            place = self._position("first")
            if one.output.part == "codes":
                place = f"row * {self._length.factor} / 2 + first / 2"
            body.line(f"if (is_row) {one.store(body, place, schedule)}")

    def _folded_in_group(
        self, reduction: Reduction, fold: Fold, state: str, prepare: Callable[[str], str] | None
    ) -> str:
        """Write the same for a group, of which this thread has a pack."""
        body, group = self._body, self._plan.group
        body.divisors.add(str(group))  # a pack has neighbours of one group only
        kept = self._meanwhile.kept_group(reduction)
        if not kept:
            return self._fold_group(reduction, fold, state, prepare)
        body.line(f"auto {state} = {kept};")
        with body.block("if constexpr (!KEEPS)"):
            again = self._fold_group(reduction, fold, f"{state}_again", prepare)
            body.line(f"{state} = {again};")
        return state

    def _fold_group(
        self, reduction: Reduction, fold: Fold, state: str, prepare: Callable[[str], str] | None
    ) -> str:
        body, group = self._body, self._plan.group
        self._begun(reduction, fold, state)

        def add(_: Index) -> None:
            places = body.split("col", reduction.value.shape[-2:])
            index = reduction.index((*self._kept, *places[:1]), places[1:])
            self._add(reduction, state, index, prepare)

        self._lanes(add)
        body.line(f"{state} = op::merged_in_group<{group} / VEC, EXACT>({state});")
        return state

    def _begun(self, reduction: Reduction, fold: Fold, state: str) -> str:
        struct = f"op::{fold.state}<{reduction.element}>"
        self._body.line(f"{struct} {state} = {struct}::start();")
        return struct

    def _add(
        self,
        reduction: Reduction,
        state: str,
        index: Index,
        prepare: Callable[[str], str] | None,
    ) -> None:
        order = index[reduction.dims[-1]] if self._is_group(reduction) else "col"
        text = added(reduction, self._body, index, order)
        if prepare is not None:
            text = prepare(self._body.let(reduction.element, text))
        self._body.line(f"{state}.add({text});")

    def _is_group(self, reduction: Reduction) -> bool:
        return any(one[0].reduction is reduction for one in self._plan.groups)

    def _store(self, outputs: list[RowOutput]) -> None:
        body, stored = self._body, self._meanwhile.work.stores
        made = [MadePack(one, f"{one.buffer.label}_made") for one in outputs if one not in stored]
        again = [MadePack(one, f"{one.buffer.label}_made") for one in stored]

        def content() -> None:
            for number, results in enumerate(self._plan.groups, 1):
                index = results[0].reduction.result_index((*self._kept, self._group_index))
                self._reduce(results, f"group{number}", index, self._folded_in_group)
            if made:
                self._write_packs(made)
            if again:
                with body.block("if constexpr (!KEEPS)"):
                    self._write_packs(again)
            self._store_groups()

        self._loop(content)
        body.written.update(one.buffer for one in outputs)

    @property
    def _group_index(self) -> str:
        return f"(first / {self._plan.group})"

    def _store_groups(self) -> None:
        """Write what has a number for each group, by the first thread of it."""
        body, outputs = self._body, self._plan.of("groups", "turned groups")
        if not outputs:
            return
        with body.block(f"if (is_row && first % {self._plan.group} == 0)"):
            for one in outputs:
                index = (*self._kept, self._group_index)
                if one.part == "turned groups":
                    index = (self._group_index, *self._kept)
                store_scale(body, one.buffer, index, one.value.at(body, index))

    def _position(self, place: str) -> str:
        return f"row * {self._length.factor} + {place}"

    def _loop(self, content: Callable[[], None]) -> None:
        write_loop(self._body, self._span, self._plan.schedule, content)

    def _lanes(self, write: Callable[[Index], None]) -> None:
        """Write the loop over the elements of a pack."""
        body, plan = self._body, self._plan
        with body.lanes(self._position("col")):
            inner = body.split("col", plan.inner)
            index = (*self._kept, *inner)
            body.linear[index] = ((*plan.outer, *plan.inner), "at")
            if len(inner) > 1:
                body.linear[inner] = (plan.inner, "col")
            self._meanwhile.recall_products(index)
            write(index)
