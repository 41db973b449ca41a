"""The operators that a graph may hold, core ATen and kopt's own: names, and what rounds in each.

What is not named here is refused at import and by the interpreter: a graph.json calls nothing else
of torch. Operators that draw random numbers or write into their arguments are left out on purpose.
"""

import re

from kopt.config.errors import ToolError

from .custom_operators import NAMESPACE, PACKED_E2M1, WRITTEN_WHERE
from .graph import Graph


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


VIEWS = _words(
    """alias as_strided clone contiguous detach expand permute reshape select slice squeeze
    transpose t unsqueeze view _unsafe_view lift_fresh_copy"""
)
"""Elements as they were, in another order or less of them."""
MOVES = _words(
    """cat stack constant_pad_nd copy diagonal embedding flip gather index index_select masked_fill
    masked_select_backward narrow reflection_pad1d reflection_pad2d reflection_pad3d repeat
    replication_pad1d replication_pad2d replication_pad3d roll scatter select_scatter slice_scatter
    split split_with_sizes tril triu unbind unfold upsample_nearest1d upsample_nearest2d
    upsample_nearest3d pixel_shuffle pixel_unshuffle index_put"""
)
"""Elements moved, never computed."""
CONSTANTS = _words(
    """arange empty full full_like new_full new_ones new_zeros ones ones_like scalar_tensor zeros
    zeros_like eye"""
)
CHOICES = _words(
    """abs amax amin any all argmax argmin bitwise_and bitwise_not bitwise_or bitwise_xor ceil clamp
    clamp_max clamp_min eq floor ge gt hardtanh isinf isnan le logical_and logical_not logical_or
    logical_xor lt max max_pool2d_with_indices max_pool3d_with_indices maximum min minimum ne neg
    relu relu6 round sign sort threshold topk trunc where adaptive_max_pool2d
    adaptive_max_pool3d _adaptive_max_pool2d"""
)
"""One of their operands, or its sign: nothing rounds."""
CONTRACTIONS = _words("addmm baddbmm bmm convolution mm dot mv")
SUMS = _words(
    """sum mean cumsum avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d
    _adaptive_avg_pool3d"""
)
EXPONENTIALS = _words(
    """exp exp2 sigmoid silu tanh softplus log_sigmoid_forward mish elu celu selu sinh cosh
    expm1"""
)
"""Fast approximations lose |x| roundings: exp(x) is taken as 2^(x / ln 2)."""
ABSOLUTE = _words("gelu erf erfc sin cos tan log1p asin acos atan atan2 logit")
"""Right to a rounding of their argument, not of their result."""
POINTWISE = _words(
    """_to_copy add addcdiv addcmul cumprod div fmod hardsigmoid hardswish leaky_relu lerp log log10
    log2 mul pow prod reciprocal remainder rsqrt rsub sqrt square sub upsample_bilinear2d
    upsample_trilinear3d upsample_linear1d upsample_bicubic2d floor_divide"""
)
COMPOSITES = _words(
    """_softmax _log_softmax native_layer_norm native_group_norm _native_batch_norm_legit
    _native_batch_norm_legit_functional _native_batch_norm_legit_no_training var var_mean std
    linalg_vector_norm logsumexp"""
)
"""Taken apart where their roundings are followed."""
RECURRENT = _words("lstm gru")
CUSTOM = frozenset(f"{NAMESPACE}.{name}.default" for name in (PACKED_E2M1, WRITTEN_WHERE))
"""The full names of kopt's own operators (custom_operators.py); imports and what is handed back may
not call them."""
ALLOWED = frozenset[str]().union(
    *(VIEWS, MOVES, CONSTANTS, CHOICES, CONTRACTIONS, SUMS, EXPONENTIALS, ABSOLUTE, POINTWISE),
    *(COMPOSITES, RECURRENT),
)
EXACT = VIEWS | MOVES | CONSTANTS | CHOICES
RANDOM = _words(
    """bernoulli dropout multinomial native_dropout normal poisson rand rand_like randint
    randint_like randn randn_like randperm uniform"""
)


def base_name(op: str) -> str:
    """Return `addmm` of `aten.addmm.default`."""
    _, _, rest = op.partition(".")
    return rest.partition(".")[0]


_OPERATOR = re.compile(r"aten\.[a-z_][a-z0-9_]*\.[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*")


def is_allowed(op: str) -> bool:
    """Return whether any graph may call `op`: an operator of ATen's table, and no attribute of it.

    A graph is data that foreign code may have written: its names must reach nothing of Python.
    """
    matched = _OPERATOR.fullmatch(op) is not None
    return matched and not op.endswith("out") and base_name(op) in ALLOWED


def is_known(op: str) -> bool:
    """Return whether a graph that kopt itself has exported may call `op`."""
    return op in CUSTOM or is_allowed(op)


def refuse_foreign(graph: Graph) -> None:
    """Return if the graph calls nothing but operators of the table.

    Raises:
        ToolError: It does; the message names the first.
    """
    for node in graph.nodes:
        if not is_allowed(node.op):
            raise ToolError(f"{node.op} is no operator that kopt interprets")
