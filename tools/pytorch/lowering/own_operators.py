"""What kopt's own operators become in CUDA: codes, two a byte, and outputs written in part."""

from collections.abc import Callable
from dataclasses import dataclass

from kopt.tools.pytorch.custom_operators import NAMESPACE, PACKED_E2M1, WRITTEN_WHERE

from .body import Body
from .call import Call
from .values import Computed, Index, Value, Viewed, converted

Lowering = Callable[[Call], Value]


@dataclass(frozen=True, eq=False)
class PackedCodes(Computed):
    """The e2m1 codes of values with twice as many columns."""

    @property
    def rounded(self) -> Value:
        """The float32 values."""
        return self.reads[0]


@dataclass(frozen=True, eq=False)
class WrittenWhere(Viewed):
    """Another value, of which an output has only what is valid."""

    valid: Value


def _packed_e2m1(call: Call) -> Value:
    values = call.program.once(converted(call.value(0), "float32", call.sizes))

    def write(body: Body, index: Index) -> str:
        *others, byte = index
        low = values.at(body, (*others, body.let("Index", f"2 * {byte}")))
        high = values.at(body, (*others, body.let("Index", f"2 * {byte} + 1")))
        return f"kopt::float2_to_e2m1x2(make_float2({low}, {high}))"

    return PackedCodes(write, call.shape, call.dtype, (values,), 2 * values.cost + 2)


def _written_where(call: Call) -> Value:
    value = call.value(0)
    return WrittenWhere(value, value.shape, lambda _, index: index, call.value(1))


def lowerings() -> dict[str, Lowering]:
    """Return the lowering of each operator by its name, overload included."""
    table = {PACKED_E2M1: _packed_e2m1, WRITTEN_WHERE: _written_where}
    return {f"{NAMESPACE}.{name}.default": lower for name, lower in table.items()}
