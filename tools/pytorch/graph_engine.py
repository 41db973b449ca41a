"""The engine of a worker that runs graphs of oracles on a GPU; no candidate ever runs in it.

What the oracle does on the CPU it does here by the same interpreter: one exact run in float64, and
some whose roundings are sampled. The random numbers are other ones, so that deviations differ from
those of the CPU as those of two seeds do.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.config.errors import InfraError, ToolError
from kopt.tools.devices.device import Arrays
from kopt.tools.gpu.array_file import read_arrays, write_arrays
from kopt.tools.gpu.messages import (
    Answer,
    GraphRunsAnswer,
    GraphRunsRequest,
    OpenedGpu,
    Request,
    StartAnswer,
    StartRequest,
)

from .graph import FILE_NAME, Graph
from .interpreter import BoundGraph
from .kept_contractions import KeptContractions, unmoved_values
from .rounding_noise import Roundings, nth_run
from .spread import Spread, on_host
from .torch_library import Tensor, load_torch

KEPT_ON_GPU = 1 << 30
"""Elements of contractions that are kept, 8 GiB in float64."""
_RESULTS = "results"


class GraphEngine:
    """Implements `worker.__main__.Engine`."""

    def __init__(self) -> None:
        """Import torch; create no context.

        Raises:
            SetupError: torch is not installed.
        """
        self._torch = load_torch()
        self._device = "cpu"

    def answer(self, request: Request, folder: Path) -> Answer:
        """Do what `request` asks."""
        match request:
            case StartRequest():
                return StartAnswer(facts=self.start(request.device_uuid))
            case GraphRunsRequest():
                return self._run(request, folder)
            case _:
                raise InfraError(f"a worker for graphs knows no {request.kind}")

    def start(self, uuid: str) -> OpenedGpu:
        """Create the context of torch.

        Raises:
            InfraError: torch sees no such GPU.
            RuntimeError: CUDA refuses.
        """
        cuda = self._torch.cuda
        known = [cuda.get_device_properties(index) for index in range(cuda.device_count())]
        places = [index for index, one in enumerate(known) if f"GPU-{one.uuid}" == uuid]
        if not places:
            raise InfraError(f"torch sees no GPU {uuid}")
        (index,) = places
        self._device = f"cuda:{index}"
        cuda.set_device(index)
        self._torch.zeros(1, device=self._device)
        facts = known[index]
        sms, l2_bytes = facts.multi_processor_count, facts.L2_cache_size
        return OpenedGpu(index=index, uuid=uuid, sm_count=sms, l2_bytes=l2_bytes)

    def _run(self, request: GraphRunsRequest, folder: Path) -> GraphRunsAnswer:
        arrays = read_arrays(folder, request.inputs, {**request.dtypes, FILE_NAME: "uint8"})
        graph = Graph.model_validate_json(arrays.pop(FILE_NAME).tobytes())
        try:
            results = self._results(graph, request, arrays)
            self._release()
        except (ToolError, RuntimeError, MemoryError) as error:  # also that memory does not suffice
            lines = str(error).splitlines() or [type(error).__name__]
            return GraphRunsAnswer(results=None, refused=lines[0])
        return GraphRunsAnswer(results=write_arrays(folder, _RESULTS, results.items()))

    def _results(self, graph: Graph, request: GraphRunsRequest, arrays: Arrays) -> Arrays:
        torch, tf32 = self._torch, frozenset(request.tf32)
        kept = KeptContractions(unmoved_values(graph), KEPT_ON_GPU)
        bound = BoundGraph(graph, request.axes, kept, self._device)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's, of how it could be faster
            inputs = {
                name: self._tensor(arrays.pop(name), dtype)
                for name, dtype in request.dtypes.items()
            }
            spreads = {name: Spread(torch, one) for name, one in bound.run(inputs).items()}
            for place in range(request.samples):
                run = nth_run(place)
                generator = torch.Generator(self._device).manual_seed(run.seed)
                got = bound.run(inputs, Roundings(torch, generator, tf32, scale=run.scale))
                for name, one in spreads.items():
                    one.add(got.pop(name), run)
            del kept, bound, inputs
            exact = on_host({f"exact/{name}": one.exact for name, one in spreads.items()})
            return exact | on_host({f"deviation/{n}": one.deviation for n, one in spreads.items()})

    def _tensor(self, array: npt.NDArray[Any], dtype: str) -> Tensor:
        """Return an input on the device: float64 if it is a floating-point number."""
        torch = self._torch
        bits = array if array.dtype.kind != "V" else array.view(f"i{array.dtype.itemsize}")
        tensor = torch.from_numpy(np.array(bits, order="C")).to(self._device)
        if array.dtype.kind == "V":
            tensor = tensor.view(getattr(torch, dtype))
        return tensor.to(torch.float64) if tensor.is_floating_point() else tensor

    def _release(self) -> None:
        """Give memory back to the GPU: candidates are timed on it."""
        if self._torch.cuda.is_initialized():
            self._torch.cuda.empty_cache()
