"""The files of an imported problem's folder, as texts."""

from kopt.tools.pytorch.graph import Graph

from .probing import CheckBasis

_ORACLE = '''"""Oracle of {name}: the graph beside it in float64, by kopt's interpreter."""

from kopt.tools.pytorch.oracle import imported_oracle
from kopt.kernels.input_regimes import Magnitudes

_oracle = imported_oracle(
    __file__,
    digest="{digest}",
    magnitudes=Magnitudes({tiny!r}, {huge!r}),
    precision="{precision}",
)
make_inputs, expected = _oracle.make_inputs, _oracle.expected
warm_up, computed_values = _oracle.warm_up, _oracle.computed_values
REGIMES = {regimes!r}
DERIVED_REGIMES = {derived!r}
'''

_BASELINE = '''"""The module of {name} in torch: eager, compiled. Calls allocate intermediates."""

from pathlib import Path

from kopt.tools.pytorch.library_side import bound_call

DISTRIBUTIONS = ("torch",)
_FOLDER = Path(__file__).parent


def eager(tensors, scalars, pdl):
    """One call of the operators, one after another."""
    return bound_call(_FOLDER, tensors)


def compiled(tensors, scalars, pdl):
    """torch.compile, as it is by default."""
    return bound_call(_FOLDER, tensors, mode="default")


def compiled_max(tensors, scalars, pdl):
    """torch.compile with tuned products; kopt captures the CUDA graph itself."""
    return bound_call(_FOLDER, tensors, mode="max-autotune-no-cudagraphs")
'''


def oracle_text(name: str, digest: str, precision: str, basis: CheckBasis) -> str:
    """Return oracle.py, which is bound to one graph.json."""
    return _ORACLE.format(
        name=name,
        digest=digest,
        tiny=basis.tiny,
        huge=basis.huge,
        precision=precision,
        regimes=basis.regimes,
        derived=basis.derived,
    )


def baseline_text(name: str) -> str:
    """Return baseline.py."""
    return _BASELINE.format(name=name)


def graph_text(graph: Graph) -> str:
    """Return graph.json."""
    return graph.model_dump_json(indent=1, exclude_defaults=False) + "\n"
