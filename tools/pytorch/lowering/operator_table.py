"""The lowering of each operator that is supported, and the refusal of all others by name."""

from collections.abc import Callable
from functools import lru_cache

from kopt.config.errors import UnsupportedOperator
from kopt.tools.pytorch.graph import Node

from . import (
    convolution,
    gathers,
    joins,
    matmul,
    norms,
    own_operators,
    pointwise,
    pointwise_arguments,
    pools,
    recurrent,
    reductions,
    scans,
    upsampling,
    views,
)
from .call import Call
from .values import Value

Lowering = Callable[[Call], Value | tuple[Value, ...]]

_RANDOM = (
    *("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like"),
    *("bernoulli", "multinomial", "normal", "uniform", "exponential", "dropout", "poisson"),
)
_SHAPED_BY_DATA = ("nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive")
_DTYPES = (
    "float32, float16, bfloat16, float64, int64, int32, int16, int8, uint8 and bool are supported"
)


def _dropout(call: Call) -> tuple[Value, ...]:
    """Lower dropout where it does nothing."""
    if call.argument(2, "train") is False or call.number(1) == 0:
        return (call.value(0),)
    call.refuse(
        "drops elements at random, so that no result is right; export the module in eval mode"
    )


@lru_cache(maxsize=1)
def operators() -> dict[str, Lowering]:
    """Return the lowering of each operator by its name, overload included."""
    table: dict[str, Lowering] = {"aten.native_dropout.default": _dropout}
    for module in (
        *(pointwise, pointwise_arguments, views, joins, gathers, reductions, norms, pools),
        *(scans, matmul, convolution, recurrent, upsampling, own_operators),
    ):
        table.update(module.lowerings())
    return table


@lru_cache(maxsize=1)
def pointwise_operators() -> frozenset[str]:
    """Return the operators whose results have a value for each of their operands' elements."""
    return frozenset((*pointwise.lowerings(), *pointwise_arguments.lowerings()))


def lowering_of(node: Node) -> Lowering:
    """Return how `node` is lowered.

    Raises:
        UnsupportedOperator: It is not; the message says why, where, and what is.
    """
    found = operators().get(node.op)
    if found is not None:
        return found
    name = node.op.split(".")[1] if node.op.count(".") else node.op
    where = f" ({node.source or node.name})"
    if name.rstrip("_") in _RANDOM:
        raise UnsupportedOperator(
            f"{node.op} is random{where}: no result is right; draw it outside and pass it in"
        )
    if name in _SHAPED_BY_DATA:
        raise UnsupportedOperator(
            f"{node.op} has a shape that depends on data{where}; only shapes that follow from"
            " the inputs' shapes are supported"
        )
    families = sorted({one.split(".")[1] for one in operators()})
    raise UnsupportedOperator(
        f"{node.op} is not supported{where}; supported are {', '.join(families)}"
    )


def check_dtypes(node: Node, known: frozenset[str]) -> None:
    """Refuse a node whose results have a dtype without a CUDA type.

    Raises:
        UnsupportedOperator: One has.
    """
    for result in node.results:
        if result is not None and result.dtype not in known:
            where = node.source or node.name
            raise UnsupportedOperator(f"{node.op} gives {result.dtype} ({where}); {_DTYPES}")
