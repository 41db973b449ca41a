"""The precision by which an imported function can be judged: the asked one, or else IEEE float32.

`torch` lets convolutions round their operands to TF32, as torch does by default. In a deep network,
or in a sum of very many elements, those roundings may be as large as what inputs change. Where they
are, and IEEE products can be judged, the problem asks for these: fewer kernels are right than the
asked precision would have allowed, and none more. Nothing here widens a gate.
"""

from dataclasses import dataclass, replace

from kopt.config.errors import ToolError
from kopt.kernels.precision import Precision
from kopt.tools.pytorch.graph import Graph
from kopt.tools.pytorch.operators import base_name
from kopt.tools.pytorch.oracle import TF32_USERS

from .effects import ADVICE
from .probing import CheckBasis, Probe, probe


@dataclass(frozen=True)
class JudgedPrecision:
    """What a problem's checks may rest on, and the precision that they take."""

    basis: CheckBasis
    precision: Precision
    warnings: tuple[str, ...] = ()


def judged_precision(asked: Probe, graph: Graph) -> JudgedPrecision:
    """Return what `graph` can be judged by with the asked precision, or with `ieee` for `torch`.

    `tf32` is never changed: nobody has it who did not ask for it.

    Raises:
        ToolError: It can be judged with neither; the message is that of the narrower precision.
    """
    try:
        return JudgedPrecision(probe(asked), asked.precision)
    except ToolError as error:
        if asked.precision != "torch" or not _rounds_to_tf32(graph, asked.precision):
            raise
        reason = str(error).replace(ADVICE, "").rstrip(":; ")
    return JudgedPrecision(
        probe(replace(asked, precision="ieee")),
        "ieee",
        (
            f"convolutions in TF32 could not be judged ({reason}): the problem has precision ieee,"
            " and its baselines are timed so",
        ),
    )


def _rounds_to_tf32(graph: Graph, precision: Precision) -> bool:
    return any(base_name(node.op) in TF32_USERS[precision] for node in graph.nodes)
