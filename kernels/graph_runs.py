"""What an oracle may ask of a GPU: runs of a PyTorch graph in float64, exact and with roundings.

The right results of a large workload take minutes on a CPU and less than a second on a GPU, whose
float64 is IEEE's as well. A device that can do it implements `GraphRunner`; an oracle whose
`expected` has a parameter called `graphs` is given one (oracle.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class GraphRuns:
    """One graph with its inputs, and what is asked about it."""

    graph: bytes
    """The text of graph.json."""
    axes: Mapping[str, int]
    """Sizes of the axes that the graph names."""
    inputs: Mapping[str, npt.NDArray[Any]]
    """Every input, parameter, buffer and constant of the graph, in storage shape and dtype."""
    tf32: tuple[str, ...]
    """Contractions whose operands may be rounded to TF32."""
    samples: int
    """Runs whose roundings are sampled."""


@dataclass(frozen=True)
class GraphResults:
    """What the runs gave, by output."""

    exact: dict[str, npt.NDArray[np.float64]]
    deviation: dict[str, npt.NDArray[np.float64]]
    """Root mean square of the distances of the sampled runs from `exact`."""


@runtime_checkable
class GraphRunner(Protocol):
    """A device that runs graphs."""

    def run_graph(self, runs: GraphRuns) -> GraphResults | None:
        """Return the results; None if the graph does not run there, for want of memory mostly.

        Raises:
            InfraError: The device was abandoned.
        """
        ...
