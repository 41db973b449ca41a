"""The oracle of an imported problem: its graph in float64, and how far honest kernels may be off.

`oracle.py` beside the graph is three lines that call `imported_oracle`. Nothing of the user's code
runs: inputs are drawn as the graph says, the graph is interpreted, and the budget is the spread of
runs whose roundings are sampled (rounding_noise.py).
"""

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.config.errors import ToolError
from kopt.kernels.graph_runs import GraphResults, GraphRunner, GraphRuns
from kopt.kernels.input_regimes import Magnitudes
from kopt.kernels.oracle import Arrays, Expected, Inputs
from kopt.kernels.problem import Workload

from .budget import ORDINARY_ELEMENTS, expected_within
from .contraction_work import flops_at
from .drawing import InputDraw, draw_input
from .graph import FILE_NAME, AxisSize, Graph, read_graph
from .interpreter import BoundGraph
from .kept_contractions import KeptContractions, unmoved_values
from .rounding_noise import Roundings, SampledRun, nth_run
from .sampled_runs import processors, run_values, sampled_runs
from .spread import Spread, on_host
from .torch_library import Tensor, load_torch, threads_of

SAMPLES = 16
"""Runs whose roundings are sampled: twelve are independent, which know a deviation to 20 %."""
FEW_SAMPLES = 5
"""Sampled runs of a large graph with few outputs on the CPU, of which four are independent."""
MANY_ELEMENTS = 1 << 24
"""Elements of all inputs and outputs from which on a graph is large."""
MANY_FLOPS = 1 << 31
"""Operations of contractions from which on a graph is large; a run makes twice as many."""
MANY_VALUES = 1 << 22
"""Elements of all values on the way from which on a graph is large, 60 ns each in a run."""
TF32_USERS = {
    "ieee": frozenset[str](),
    "torch": frozenset({"convolution"}),
    "tf32": frozenset({"convolution", "mm", "addmm", "bmm", "baddbmm"}),
}
"""Contractions whose operands may be rounded to TF32, by a problem's precision."""


@dataclass(frozen=True)
class ImportedOracle:
    """The functions of an oracle.py, for the graph in a folder."""

    folder: Path
    digest: str = ""
    """SHA-256 of graph.json: the cache of results hashes oracle.py, and so this."""
    magnitudes: Magnitudes = field(default_factory=lambda: Magnitudes(2.0**-6, 2.0**3))
    precision: str = "ieee"

    @cached_property
    def graph(self) -> Graph:
        """The graph beside oracle.py.

        Raises:
            ToolError: There is none, or another one than was imported.
        """
        path = self.folder / FILE_NAME
        if self.digest and digest_of(path) != self.digest:
            raise ToolError(f"{path} was changed after its import: import the function again")
        return read_graph(self.folder)

    @staticmethod
    def warm_up() -> None:
        """Import torch.

        Raises:
            SetupError: It is not installed.
        """
        load_torch()

    def computed_values(self, workload: Workload) -> int:
        """Return how many elements all values of the graph have."""
        return run_values(self.graph, workload.axes)

    def make_inputs(self, workload: Workload, rng: np.random.Generator, regime: str) -> Inputs:
        """Return every input, parameter, buffer and constant of the graph."""
        recorded = max((given.drawing.samples for given in self.graph.inputs), default=0)
        sample = int(rng.integers(recorded)) if recorded and regime == "normal" else None
        draw = InputDraw(self.folder, workload, rng, regime, self.magnitudes, sample)
        return {given.name: draw_input(given, draw) for given in self.graph.inputs}

    def expected(
        self,
        inputs: Arrays,
        scalars: Mapping[str, Any],
        workload: Workload | None = None,
        samples: int = SAMPLES,
        *,
        graphs: GraphRunner | None = None,
    ) -> dict[str, Expected]:
        """Return every output with the spread that honest roundings leave in it.

        Args:
            inputs: Every input of the graph.
            scalars: None: a graph has its numbers in it.
            workload: Its axes; None: those of the inputs.
            samples: Runs whose roundings are sampled, where `FEW_SAMPLES` are not enough.
            graphs: What runs large graphs; None, or one that cannot: torch on the CPU.
        """
        axes = self._axes_of(inputs) if workload is None else workload.axes
        is_large = self._is_large(inputs, axes)
        found = None
        has_few_runs = False
        if graphs is not None and is_large:
            found = graphs.run_graph(self._runs(inputs, axes, samples))
        if found is None:
            # Of an output of few elements few runs say enough: none is ten times worse than told.
            has_few_runs = is_large and self._written(axes) <= ORDINARY_ELEMENTS
            count = FEW_SAMPLES if has_few_runs else samples
            found = self._results(inputs, axes, is_large, count)
        types = {o.name: self.graph.type_of(o.value).dtype for o in self.graph.outputs}
        return {
            name: expected_within(exact, found.deviation[name], types[name], has_few_runs)
            for name, exact in found.exact.items()
        }

    def exact(
        self, inputs: Arrays, workload: Workload | None = None
    ) -> dict[str, npt.NDArray[np.float64]]:
        """Return every output in float64, without what roundings leave in it."""
        axes = self._axes_of(inputs) if workload is None else workload.axes
        with self._bound(inputs, axes, self._is_large(inputs, axes)) as run:
            return on_host({name: one.double() for name, one in run.exact().items()})

    def _runs(self, inputs: Arrays, axes: Mapping[str, int], count: int) -> GraphRuns:
        text, tf32 = self.graph.model_dump_json().encode(), tuple(TF32_USERS[self.precision])
        return GraphRuns(text, axes, inputs, tf32, count)

    def _results(
        self, inputs: Arrays, axes: Mapping[str, int], is_large: bool, count: int
    ) -> GraphResults:
        with self._bound(inputs, axes, is_large) as run:
            run = replace(run, kept=KeptContractions(unmoved_values(self.graph)))
            spreads = {name: Spread(load_torch(), one) for name, one in run.exact().items()}

            def sampled(place: int) -> dict[str, Tensor]:
                return self._sampled(run, nth_run(place))

            places, values = range(count), run_values(self.graph, axes)
            runs = map(sampled, places) if is_large else sampled_runs(sampled, count, values)
            for place, got in zip(places, runs, strict=True):
                for name, one in got.items():
                    spreads[name].add(one, nth_run(place))
            return GraphResults(
                on_host({name: one.exact for name, one in spreads.items()}),
                on_host({name: one.deviation for name, one in spreads.items()}),
            )

    @contextmanager
    def _bound(self, inputs: Arrays, axes: Mapping[str, int], is_large: bool) -> Generator["_Run"]:
        torch = load_torch()
        tensors = {name: _as_tensor(torch, array) for name, array in inputs.items()}
        with torch.no_grad(), _threads(torch, is_large):
            yield _Run(self.graph, axes, tensors, is_large)

    def _axes_of(self, inputs: Arrays) -> dict[str, int]:
        return {
            extent.axis: length
            for given in self.graph.inputs
            for extent, length in zip(given.type.shape, inputs[given.name].shape, strict=True)
            if isinstance(extent, AxisSize)
        }

    def _is_large(self, inputs: Arrays, axes: Mapping[str, int]) -> bool:
        """Return whether a run has work for a GPU, or for all threads of torch."""
        elements = sum(one.size for one in inputs.values()) + self._written(axes)
        is_long = (
            flops_at(self.graph, axes) > MANY_FLOPS or run_values(self.graph, axes) > MANY_VALUES
        )
        return is_long or elements > MANY_ELEMENTS

    def _written(self, axes: Mapping[str, int]) -> int:
        """Return how many elements all outputs have."""
        shapes = (self.graph.type_of(one.value).shape for one in self.graph.outputs)
        sizes = ((axes[n.axis] if isinstance(n, AxisSize) else n for n in s) for s in shapes)
        return sum(map(prod, sizes))

    def _sampled(self, run: "_Run", sampled: SampledRun) -> dict[str, Tensor]:
        """Return every output of one run."""
        torch = load_torch()
        generator = torch.Generator().manual_seed(sampled.seed)
        tf32 = TF32_USERS[self.precision]
        rounding = Roundings(torch, generator, tf32, scale=sampled.scale)
        # Whatever is set so is set for this thread, which may be any.
        with torch.no_grad(), _threads(torch, run.is_large):
            return run.bound.run(run.tensors, rounding)


@dataclass(frozen=True)
class _Run:
    """A graph with its inputs."""

    graph: Graph
    axes: Mapping[str, int]
    tensors: Mapping[str, Any]
    is_large: bool
    """Whether there is work for all threads of torch."""
    kept: KeptContractions | None = None

    @property
    def bound(self) -> BoundGraph:
        """The graph at these axes."""
        return BoundGraph(self.graph, self.axes, self.kept)

    def exact(self) -> dict[str, Tensor]:
        """Return every output in float64."""
        return self.bound.run(self.tensors)


def _threads(torch: Any, is_large: bool) -> AbstractContextManager[None]:
    """Let torch use one thread where there is little to do: several would wait for one another."""
    return threads_of(torch, processors() if is_large else 1)


def imported_oracle(file: str, **how: Any) -> ImportedOracle:
    """Return the oracle for the graph beside `file`, an oracle.py."""
    return ImportedOracle(Path(file).absolute().parent, **how)


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        ToolError: It cannot be read.
    """
    try:
        return sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror}") from error


def _as_tensor(torch: Any, array: npt.NDArray[Any]) -> Any:
    if array.dtype.kind in "fV":  # float16 and wider, and the types of ml_dtypes
        return torch.from_numpy(np.array(array, dtype=np.float64, order="C"))
    return torch.from_numpy(np.array(array, order="C"))
