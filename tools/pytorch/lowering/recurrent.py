"""LSTM and GRU: one contraction for all inputs, then a block for each sequence walks its steps.

Sequences are independent, so that no step has to wait for other blocks. The hidden state of a
sequence lies in shared memory; its cell state belongs to the thread that computes it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from .body import Body
from .buffers import Buffer, Grid
from .call import Call
from .contraction import Contraction, Operand
from .contraction_kernels import contracted
from .cuda_types import cast, computed, stored
from .joined import Joined
from .sizes import ONE, Shape, Size, literal, product
from .values import Index, Stored, Value, Viewed
from .views import permuted

Lowering = Callable[[Call], tuple[Value, ...]]


_SHARED_BYTES = 48 * 1024
"""Of static shared memory that every kernel may have."""


@dataclass(frozen=True)
class _Weights:
    """Parameters of one layer in one direction."""

    of_input: Value
    of_hidden: Value
    biases: tuple[Value, ...]
    """Of the input's and the hidden state's products; none or both."""


@dataclass(frozen=True)
class _Cell:
    """What an LSTM and a GRU differ in."""

    gates: int
    states: int
    """Hidden state, and for an LSTM the cell state."""


_LSTM = _Cell(4, 2)
_GRU = _Cell(3, 1)


@dataclass(frozen=True)
class _Layer:
    """One layer in one direction over all sequences."""

    call: Call
    cell: _Cell
    weights: _Weights
    starts: tuple[Value, ...]
    """States before the first step, each (sequences, hidden)."""
    is_backward: bool

    @property
    def hidden(self) -> Size:
        """Elements of a hidden state."""
        return self.weights.of_hidden.shape[1]


def _recurrent(cell: _Cell) -> Lowering:
    def lower(call: Call) -> tuple[Value, ...]:
        states = call.value_list(1) if cell is _LSTM else (call.value(1),)
        parameters = call.value_list(2)
        has_biases, layers = call.flag(3), call.integer(4)
        if call.number(5) > 0 and call.flag(6):
            call.refuse("drops elements at random between layers; export it in eval mode")
        directions = 2 if call.flag(7) else 1
        value = call.value(0) if not call.flag(8) else permuted(call.value(0), (1, 0, 2))
        ends: list[list[Value]] = [[] for _ in states]
        count = 4 if has_biases else 2
        for layer in range(layers):
            sides: list[Value] = []
            for side in range(directions):
                place = layer * directions + side
                given = parameters[place * count : place * count + count]
                weights = _Weights(given[0], given[1], given[2:])
                starts = tuple(_row(one, place) for one in states)
                one = _Layer(call, cell, weights, starts, side == 1)
                output, final = _walked(one, value)
                sides.append(output)
                for kept, state in zip(ends, final, strict=True):
                    kept.append(state)
            value = _beside(call, sides, 2)
        output = value if not call.flag(8) else permuted(value, (1, 0, 2))
        return output, *(_stacked(call, kept) for kept in ends)

    return lower


def _row(value: Value, place: int) -> Value:
    """Return one layer's states."""
    return Viewed(value, value.shape[1:], lambda _, index: (str(place), *index))


def _beside(call: Call, parts: list[Value], dim: int) -> Value:
    if len(parts) == 1:
        return parts[0]
    extent = literal(0)
    for part in parts:
        extent = extent + part.shape[dim]
    first = parts[0].shape
    return Joined(tuple(parts), (*first[:dim], extent, *first[dim + 1 :]), call.dtype, dim)


def _stacked(call: Call, parts: list[Value]) -> Value:
    """Return states of all layers and directions, each with a dimension of one element added."""
    made = [Viewed(part, (ONE, *part.shape), lambda _, index: index[1:]) for part in parts]
    return _beside(call, list(made), 0)


def _walked(layer: _Layer, value: Value) -> tuple[Value, tuple[Value, ...]]:
    """Return the hidden states of all steps, and the states after the last."""
    call, program = layer.call, layer.call.program
    steps, sequences = value.shape[:2]
    most = _SHARED_BYTES // (3 * (8 if call.dtype == "float64" else 4))
    if call.sizes.largest(layer.hidden) > most:
        call.refuse(f"has more than {most} hidden units, whose state fits no block")
    products = program.realise(_input_products(layer, value))
    # Threads of a warp read neighbouring columns: the weights are needed by term, then by unit.
    turned = program.realise(permuted(layer.weights.of_hidden, (1, 0)))
    starts = tuple(program.once(one) for one in layer.starts)
    name = call.node.name
    output = program.scratch(program.unique(name), call.dtype, (steps, sequences, layer.hidden))
    ends = [
        program.scratch(program.unique(f"{name}_end"), call.dtype, (sequences, layer.hidden))
        for _ in starts
    ]
    walk = _Walk(layer, (products, turned), starts, output, ends)
    program.kernel(name, walk.write)
    return Stored(output, output.shape), tuple(Stored(one, one.shape) for one in ends)


def _input_products(layer: _Layer, value: Value) -> Value:
    """Return (steps, sequences, gates * hidden): the inputs times their weights, with biases."""
    call = layer.call
    value = call.program.at_hand(value)
    weight = layer.weights.of_input
    steps, sequences, features = value.shape
    shape: Shape = (steps, sequences, weight.shape[0])
    # A GRU's third gate scales the hidden state's product with its bias, so that it stays apart.
    biases = layer.weights.biases[: 2 if layer.cell is _LSTM else 1]

    def rows(body: Body, index: Index) -> Index:
        step, sequence = body.split(index[1], (steps, sequences))
        return step, sequence, index[2]

    def target(body: Body, index: Index) -> Index:
        step, sequence = body.split(index[1], (steps, sequences))
        return step, sequence, index[2]

    def start(body: Body, index: Index, total: str) -> str:
        return " + ".join(
            [total, *(cast(one.at(body, index[2:]), one.dtype, call.dtype) for one in biases)]
        )

    contraction = Contraction(
        batch=ONE,
        rows=product((steps, sequences)),
        columns=weight.shape[0],
        terms=features,
        left=Operand(value, rows, True),
        right=Operand(weight, lambda _, index: (index[2], index[1]), True),
        shape=shape,
        dtype=call.dtype,
        target=target,
        is_plain_order=True,
        start=start,
    )
    return contracted(call.program, contraction, f"{call.node.name}_inputs")


@dataclass(frozen=True)
class _Walk:
    """The kernel that walks the steps of one layer in one direction."""

    layer: _Layer
    operands: tuple[Stored, Stored]
    """Products of the inputs, and the weights of the hidden state by term."""
    starts: tuple[Value, ...]
    output: Buffer
    ends: list[Buffer]

    def write(self, body: Body) -> Grid:
        """Write a block for each sequence."""
        layer = self.layer
        hidden, ctype = layer.hidden, computed(layer.call.dtype)
        steps, sequences, _ = self.output.shape
        is_lstm = layer.cell is _LSTM
        body.line("// Hidden state before and after the step, then the cell state of an LSTM.")
        body.line(f"__shared__ {ctype} before[{hidden.wide}];")
        body.line(f"__shared__ {ctype} after[{hidden.wide}];")
        if is_lstm:
            body.line(f"__shared__ {ctype} cell[{hidden.wide}];")
        body.line("const Index sequence = blockIdx.x;")
        head = f"for (Index unit = threadIdx.x; unit < {hidden.code}; unit += REDUCE)"
        with body.block(head):
            for name, value in zip(("before", "cell"), self.starts, strict=False):
                body.line(f"{name}[unit] = {value.at(body, ('sequence', 'unit'))};")
        body.line("__syncthreads();  // the whole state is there before any unit reads it")
        with body.block(f"for (Index count = 0; count < {steps.code}; ++count)"):
            at = f"{steps.factor} - 1 - count" if layer.is_backward else "count"
            body.line(f"const Index step = {at};")
            with body.block(head):
                self._unit(body)
            body.line("__syncthreads();  // all units have read the state before it changes")
            with body.block(head):
                body.line("before[unit] = after[unit];")
            body.line("__syncthreads();  // the next step reads what other threads wrote")
        with body.block(head):
            for name, end in zip(("before", "cell"), self.ends, strict=False):
                body.written.add(end)
                place = body.load(end, body.position(("sequence", "unit"), end.shape))
                body.line(f"{place} = {stored(end.dtype, f'{name}[unit]')};")
        return Grid(sequences.header, "REDUCE", "__launch_bounds__(REDUCE) ")

    def _unit(self, body: Body) -> None:
        """Write what one unit does in one step."""
        layer = self.layer
        ctype, gates = computed(layer.call.dtype), layer.cell.gates
        hidden = layer.hidden
        body.line(f"{ctype} sums[{gates}] = {{}};")
        products, weights = self.operands
        with body.block(f"for (Index k = 0; k < {hidden.code}; ++k)"):
            for gate in range(gates):
                column = body.let("Index", f"{gate} * {hidden.factor} + unit")
                weight = weights.at(body, ("k", column))
                body.line(f"sums[{gate}] += {weight} * before[k];")
        columns = [body.let("Index", f"{gate} * {hidden.factor} + unit") for gate in range(gates)]
        given = [products.at(body, ("step", "sequence", column)) for column in columns]
        if layer.cell is _LSTM:
            self._lstm(body, given)
        else:
            self._gru(body, given, columns)
        self._store_output(body)

    def _lstm(self, body: Body, given: list[str]) -> None:
        ctype = computed(self.layer.call.dtype)
        names = ("input_gate", "forget_gate", "candidate", "output_gate")
        for number, name in enumerate(names):
            function = "std::tanh" if name == "candidate" else "op::sigmoid"
            body.line(f"const {ctype} {name} = {function}({given[number]} + sums[{number}]);")
        body.line("cell[unit] = forget_gate * cell[unit] + input_gate * candidate;")
        body.line("after[unit] = output_gate * std::tanh(cell[unit]);")

    def _gru(self, body: Body, given: list[str], columns: list[str]) -> None:
        ctype = computed(self.layer.call.dtype)
        biases = self.layer.weights.biases
        sums = [f"sums[{number}]" for number in range(3)]
        if biases:
            added = [biases[1].at(body, (column,)) for column in columns]
            sums = [f"({one} + {bias})" for one, bias in zip(sums, added, strict=True)]
        body.line(f"const {ctype} reset = op::sigmoid({given[0]} + {sums[0]});")
        body.line(f"const {ctype} update = op::sigmoid({given[1]} + {sums[1]});")
        body.line(f"const {ctype} candidate = std::tanh({given[2]} + reset * {sums[2]});")
        body.line("after[unit] = (1 - update) * candidate + update * before[unit];")

    def _store_output(self, body: Body) -> None:
        body.written.add(self.output)
        position = body.position(("step", "sequence", "unit"), self.output.shape)
        place = body.load(self.output, position)
        body.line(f"{place} = {stored(self.output.dtype, 'after[unit]')};")


def lowerings() -> dict[str, Lowering]:
    """Return the lowering of each operator by its name, overload included."""
    return {"aten.lstm.input": _recurrent(_LSTM), "aten.gru.input": _recurrent(_GRU)}
