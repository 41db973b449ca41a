"""Right results of large graphs beside a resident evaluator: by the caller's own process."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from kopt.config.callbacks import ignore
from kopt.config.settings import Settings
from kopt.kernels.graph_runs import GraphRunner, GraphRuns
from kopt.tools.gpu import open_gpu
from kopt.tools.gpu.open_gpu import graph_pool
from kopt.tools.pytorch.graph import FILE_NAME, Ref
from kopt.tools.remote.device import RemoteDevice
from kopt.tools.resident.open_resident import open_resident
from support.graph_engines import CPU_ENGINE
from support.imported_graphs import Imported, node


def test_an_oracle_finds_a_runner_beside_an_evaluator(
    tmp_path: Path, resident_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_gpu, "graph_pool", partial(graph_pool, engine=CPU_ENGINE))
    inputs = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}
    Imported.of(tmp_path, inputs, node("d", "aten.neg.default", (Ref(node="x"),), (2, 3)))
    device = open_resident("cuda:0", resident_settings, ignore, has_spare=True)
    assert isinstance(device, RemoteDevice)
    try:
        assert isinstance(device, GraphRunner)
        runs = GraphRuns((tmp_path / FILE_NAME).read_bytes(), {}, inputs, (), 2)
        results = device.run_graph(runs)
        assert results is not None
        assert np.array_equal(results.exact["out"], -inputs["x"])
    finally:
        device.close()
