"""The loop over a thread's packs, and the packs that are made in it and stored."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from .cuda_types import NARROW_FLOATS, STORED, stored
from .row_body import RowBody
from .row_plan import RowOutput
from .row_schedule import Schedule
from .row_start import Span
from .values import Index


def write_loop(body: RowBody, span: Span, schedule: Schedule, content: Callable[[], None]) -> None:
    """Write the loop over a thread's packs; those that `content` needs are read first."""
    body.line("#pragma unroll")
    with body.block("for (int i = 0; i < ITEMS; ++i)"):
        body.line(f"const int first = {span.first};")
        with body.block(f"if ({span.inside})"):
            place = len(body.lines)
            content()
            text = "\n".join(body.lines[place:])
            used = [one for one in body.packs.values() if re.search(rf"\b{one.name}\b", text)]
            reads = [
                f"const auto {one.name} = KEEPS ? {one.name}_kept[KEEPS ? i : 0]"
                f" : {span.read(body, one, schedule)};"
                for one in used
            ]
            before = body.before("\n".join((text, *reads)))
            body.lines[place:place] = [body.indented(line) for line in (*before, *reads)]


@dataclass(frozen=True)
class MadePack:
    """Neighbours of an output that a thread computes one by one and stores at once."""

    output: RowOutput
    name: str

    @property
    def _is_float(self) -> bool:
        """Whether floats are kept, and rounded together where they are stored."""
        return self.output.part == "codes" or self.output.buffer.dtype in NARROW_FLOATS

    def begin(self, body: RowBody) -> None:
        """Write its declaration."""
        dtype = self.output.buffer.dtype
        element = "float" if self._is_float else STORED[dtype]
        body.line(f"op::Pack<{element}, VEC> {self.name};")

    def compute(self, body: RowBody, index: Index) -> None:
        """Write the statement that computes an element, inside the loop over the pack."""
        dtype = self.output.buffer.dtype
        value = self.output.before_rounding.at(body, index)
        if not self._is_float:
            value = stored(dtype, value)
        body.line(f"{self.name}.at[v] = {value};")

    def store(self, body: RowBody, position: str, schedule: Schedule) -> str:
        """Return the statement that stores it at `position`."""
        buffer = self.output.buffer
        call = "write_streaming" if schedule.streams else "write_pack"
        made = f"op::to_{buffer.dtype}({self.name})" if self._is_float else self.name
        if self.output.part == "codes":
            made = f"op::packed_e2m1({self.name})"
        return f"op::{call}({body.pointer(buffer)} + {position}, {made});"
