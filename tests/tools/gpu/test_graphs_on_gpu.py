"""Right results from a real GPU are those of the CPU."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from kopt.config.settings import Settings
from kopt.tools.gpu.open_gpu import open_gpu
from kopt.tools.pytorch import oracle
from kopt.tools.pytorch.graph import Ref
from kopt.tools.pytorch.oracle import ImportedOracle
from support.imported_graphs import Imported, node

pytestmark = pytest.mark.gpu


def test_exact_results_are_equal_and_slack_is_alike(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    inputs = {
        "a": rng.standard_normal((64, 256)).astype(np.float32),
        "b": rng.standard_normal((256, 96)).astype(np.float32),
    }
    product = node("m", "aten.mm.default", (Ref(node="a"), Ref(node="b")), (64, 96))
    softmax = node("s", "aten._softmax.default", (Ref(node="m"), 1, False), (64, 96))
    judge = ImportedOracle(Imported.of(tmp_path, inputs, product, softmax).folder)
    own = judge.expected(inputs, {})["out"]
    monkeypatch.setattr(oracle, "MANY_VALUES", -1)
    told: list[str] = []
    with closing(open_gpu("cuda:0", settings, told.append)) as device:
        found = judge.expected(inputs, {}, graphs=device)["out"]
    assert told == []
    assert np.allclose(found.exact, own.exact, rtol=1e-10, atol=1e-14)
    assert own.slack is not None
    assert found.slack is not None
    assert 0.8 < np.median(found.slack / own.slack) < 1.25
