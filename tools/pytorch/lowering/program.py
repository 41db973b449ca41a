"""A candidate while it is written: its kernels so far, and the way from a value into memory."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kopt.tools.pytorch.graph import Node

from .body import Body
from .buffers import Buffer, Grid, Kernel, Use, per_element
from .cuda_types import stored
from .reduction import Reduction
from .row_schedule import PLAIN, Schedule
from .sizes import Shape, Size, SizeTable, product
from .values import Index, Pointwise, Stored, Value, Viewed

MAX_SOURCES = 24
"""Buffers that one expression may read; beyond them its parts are stored first."""
CHEAP = 4
"""Cost up to which a value is computed again by each of its readers."""
_CLEARLY_NARROW = 1 << 20
LONG = 48
"""Cost beyond which a value is stored whoever reads it."""

Writer = Callable[[Body], Grid]


@dataclass(eq=False)
class Pending:
    """A result whose kernel is not written yet: what is computed from it may be joined to it.

    The first reader that is not joined has the kernel written and reads its buffer.
    """

    program: "LoweredProgram"
    name: str
    shape: Shape
    dtype: str
    write: Callable[[Body, "Epilogue"], Grid]
    """Writes the kernel, which hands each of its results to the epilogue."""
    buffer: Buffer | None = None
    origin: Node | None = None

    def __post_init__(self) -> None:
        """Keep the node that is being lowered."""
        self.origin = self.program.node

    @property
    def cost(self) -> int:
        """A load."""
        return 1

    @property
    def sources(self) -> frozenset[Buffer]:
        """The buffer, if there is one."""
        return frozenset() if self.buffer is None else frozenset((self.buffer,))

    def settled(self) -> Stored:
        """Return the result in memory."""
        if self.buffer is None:
            self.program.finish(self, self, None)
        assert self.buffer is not None
        return Stored(self.buffer, self.shape)

    def at(self, body: Body, index: Index) -> str:
        """Return the name of an element: what this kernel computed itself, or a load."""
        given = body.given.get(self)
        if given is not None and given[0] == index:
            return given[1]
        return self.settled().at(body, index)


@dataclass(frozen=True)
class Epilogue:
    """What becomes of the results of a kernel: `value`, computed from them, is stored."""

    pending: Pending
    value: Value
    target: Buffer

    def store(self, body: Body, index: Index, result: str) -> None:
        """Store the element at `index`, where `result` is the pending one."""
        body.given[self.pending] = (index, result)
        store(body, self.target, index, self.value.at(body, index))
        del body.given[self.pending]


def store(body: Body, buffer: Buffer, index: Index, value: str) -> None:
    """Write the statement that stores a computed value."""
    body.written.add(buffer)
    place = body.load(buffer, body.position(index, buffer.shape))
    body.line(f"{place} = {stored(buffer.dtype, value)};")


@dataclass(eq=False)
class LoweredProgram:
    """The kernels of a candidate."""

    sizes: SizeTable
    schedule: Schedule = PLAIN
    kernels: list[Kernel] = field(default_factory=list[Kernel])
    node: Node | None = None
    """The one that is being lowered: kernels are called after it."""
    tune: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """Values of tune parameters that depend on the sizes, the default first."""
    tiled_work: int = 0  # of the contraction that has chosen the default tile
    conditions: list[str] = field(default_factory=list[str])
    """What must hold for the tune values of kernels that make rows."""
    note: str = "a kernel for each operator that is no index expression"
    """What the kernels are, for the candidate's header."""
    _moved: dict[Buffer, Buffer] = field(default_factory=dict[Buffer, Buffer])
    """Results that turned out to be outputs: what was written to scratch goes there."""
    _names: set[str] = field(default_factory=set[str])
    _stored: dict[int, tuple[Value, Stored]] = field(
        default_factory=dict[int, tuple[Value, Stored]]
    )
    """By identity, with the value itself, so that no other takes its place."""
    _in_place: list[tuple[Stored, Buffer]] = field(default_factory=list[tuple[Stored, Buffer]])
    """Results with the inputs that they take the place of."""

    def scratch(self, label: str, dtype: str, shape: Shape) -> Buffer:
        """Return a new buffer for a result."""
        return Buffer(label, dtype, shape, "scratch")

    def kernel(self, what: str, write: Writer, origin: Node | None = None) -> None:
        """Write a kernel and launch it.

        Args:
            what: The end of its name; its beginning is its number.
            write: Writes the statements.
            origin: The node where it begins, if that is not the one that is being lowered.
        """
        body = self.body()
        grid = write(body)
        body.lines.insert(0, f"  {self.index_type(body)}")
        text = body.text()
        uses = tuple(
            Use(buffer, parameter, buffer in body.written)
            for buffer, parameter in body.buffers.items()
            if not body.unused(buffer, text)
        )
        name = f"k{len(self.kernels) + 1}_{what.strip('_')}"
        nodes = [one for one in (origin, self.node) if one is not None]
        comment = "\n".join(dict.fromkeys(f"{one.name}: {one.source or one.op}" for one in nodes))
        launch = (grid.blocks, grid.threads, grid.bounds, grid.smem, grid.numbers, grid.options)
        self.kernels.append(Kernel(name, comment, text, uses, *launch))

    def body(self) -> Body:
        """Return the empty body of a kernel."""
        return Body()

    def index_type(self, body: Body) -> str:
        """Return the statement that names the integer type for all positions of a kernel."""
        counts: dict[str, Size] = {}
        for shape in (*(buffer.shape for buffer in body.buffers), *body.spans):
            size = product(shape)
            if size.literal is None or size.literal > _CLEARLY_NARROW:
                counts.setdefault(size.header, size)
        if not counts:
            return "using Index = int;"
        return (
            f"using Index = op::IndexOf<{', '.join(sorted(one.wide for one in counts.values()))}>;"
        )

    def unique(self, label: str) -> str:
        """Return `label`, with a number if another buffer of the program has it."""
        found, count = label, 1
        while found in self._names:
            count += 1
            found = f"{label}_{count}"
        self._names.add(found)
        return found

    def realise(self, value: Value, into: Buffer | None = None) -> Stored:
        """Return `value` in memory, in row-major order; what is there already stays."""
        if into is not None and isinstance(value, Stored) and self._moves(value.buffer, into):
            self._moved[value.buffer] = into
            return Stored(into, value.shape)
        if into is None:
            known = self._stored.get(id(value))
            if known is not None:
                return known[1]
            if isinstance(value, Stored):
                return value
            if isinstance(value, Pending) and value.buffer is not None:
                return value.settled()
        pending = joinable(value, self.sizes)
        if pending is not None:
            result = self.finish(pending, value, into)
        else:
            result = self._copy(value, into)
        self._stored[id(value)] = (value, result)
        return result

    def _moves(self, buffer: Buffer, into: Buffer) -> bool:
        """Return whether a result may be written to an output in place of its scratch buffer."""
        is_free = buffer.kind == "scratch" and buffer not in self._moved
        return is_free and buffer.dtype == into.dtype

    def launched(self) -> list[Kernel]:
        """Return all kernels, in the order of their launches."""
        return [
            replace(kernel, uses=tuple(self._placed(use) for use in kernel.uses))
            for kernel in self.kernels
        ]

    def _placed(self, use: Use) -> Use:
        return replace(use, buffer=self._moved.get(use.buffer, use.buffer))

    def finish(self, pending: Pending, value: Value, into: Buffer | None) -> Stored:
        """Write the kernel of `pending`, which stores `value`, computed from its result."""
        target = into or self.scratch(self.unique(pending.name), value.dtype, value.shape)
        if value is pending:
            pending.buffer = target
        epilogue = Epilogue(pending, value, target)
        self.kernel(pending.name, lambda body: pending.write(body, epilogue), pending.origin)
        return Stored(target, value.shape)

    def _copy(self, value: Value, into: Buffer | None) -> Stored:
        label = self.node.name if self.node else "value"
        target = into or self.scratch(self.unique(label), value.dtype, value.shape)

        def write(body: Body) -> Grid:
            count = product(value.shape)
            body.line("const Index i = Index(blockIdx.x) * blockDim.x + threadIdx.x;")
            body.line(f"if (i >= {count.code}) return;")
            index = body.split("i", value.shape)
            body.linear[index] = (value.shape, "i")
            store(body, target, index, value.at(body, index))
            return per_element(count)

        self.kernel(label, write)
        return Stored(target, value.shape)

    def reduced_in_row(self, reduction: Reduction, name: str) -> "tuple[Value, ...] | None":
        """Return the results where the program has a way of its own to reduce (rows.py)."""
        del reduction, name
        return None

    def shared(self, value: Value) -> Value:
        """Return `value` for several readers, who would compute it again."""
        return self.realise(value)

    def output(self, value: Value, into: Buffer) -> Value:
        """Return `value` for its readers after it is stored in an output.

        What takes the place of an input is kept in scratch: others may read that input yet.
        """
        if into.kind != "inout":
            return self.realise(value, into)
        made = self.realise(value)
        result = self._copy(value, None) if made.buffer.kind == "inout" else made
        self._in_place.append((result, into))
        return result

    def end(self) -> None:
        """Write the kernels, of no operator, that come after all that reads inputs."""
        self.node = None
        for one in self._in_place:
            self._copy(*one)

    def once(self, value: Value) -> Value:
        """Return `value` for a reader that reads it several times."""
        if value.cost > CHEAP or has_pending(value):
            return self.realise(value)
        return value

    def at_hand(self, value: Value) -> Value:
        """Return `value` for a loop that reads each element many times: at most a load each."""
        if value.cost > 1 + isinstance(value, Viewed) or has_pending(value):
            return self.realise(value)
        return value

    def limited(self, value: Value) -> Value:
        """Return `value`, stored if it is too long to be inlined."""
        if value.cost > LONG or len(value.sources) > MAX_SOURCES:
            return self.realise(value)
        return value


def joinable(value: Value, sizes: SizeTable) -> Pending | None:
    """Return the unwritten result that `value` can be computed beside, element by element."""
    if isinstance(value, Pending):
        return value if value.buffer is None else None
    if not isinstance(value, Pointwise):
        return None
    for operand in reversed(value.operands):
        if sizes.same_shape(operand.shape, value.shape):
            found = joinable(operand, sizes)
            if found is not None:
                return found
    return None


def has_pending(value: Value) -> bool:
    """Return whether an unwritten result stands somewhere in `value`."""
    if isinstance(value, Pending):
        return value.buffer is None
    if isinstance(value, Viewed):
        return has_pending(value.base)
    return isinstance(value, Pointwise) and any(map(has_pending, value.operands))
