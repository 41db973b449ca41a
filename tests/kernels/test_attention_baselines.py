"""What attention_decode's baseline.py gives to FlashInfer: tables, plans, outputs."""

import sys
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from kopt.kernels.baseline_loader import load_baseline
from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.problem import Baseline
from kopt.kernels.problem_loader import load_problems
from kopt.tools.check.case_data import CaseData, CaseKey, make_case_data
from kopt.tools.check.judge import judge

pytestmark = pytest.mark.slow  # torch is loaded

ATTENTION = load_problems()["attention_decode"]
PATHS = [(baseline, pdl) for baseline in ATTENTION.baselines for pdl in baseline.pdl]


class StandIn(ModuleType):
    """The two entry points of `flashinfer.decode`, in torch, on dense tables of pages."""

    def __init__(self) -> None:
        """Note nothing yet."""
        super().__init__("flashinfer.decode")
        self.used: list[dict[str, Any]] = []
        """Options of each call."""
        stand_in = self

        class BatchDecodeWithPagedKVCacheWrapper:
            """Computes with what it was planned with."""

            def __init__(self, workspace: Any, layout: str, **options: Any) -> None:
                assert layout == "NHD"
                assert workspace.numel() >= 128 << 20
                self.options = options

            def plan(self, *tables: Any, **dtypes: Any) -> None:
                indptr, indices, last, *sizes = tables
                assert {str(dtype) for dtype in dtypes.values()} == {"torch.bfloat16"}
                self.sizes = sizes
                self.pages = [indices[a:b].clone() for a, b in pairwise(indptr)]
                self.lengths = (indptr[1:] - indptr[:-1] - 1) * sizes[-1] + last

            def run(self, q: Any, caches: Any, *, out: Any, enable_pdl: bool) -> Any:
                heads, kv_heads, columns, page_size = self.sizes
                assert q.shape == out.shape == (len(self.pages), heads, columns)
                assert caches[0].shape[1:] == (page_size, kv_heads, columns)
                stand_in.used.append({**self.options, "pdl": enable_pdl})
                return _attend(q, caches, self.pages, self.lengths, out)

        self.BatchDecodeWithPagedKVCacheWrapper = BatchDecodeWithPagedKVCacheWrapper

    def xqa_batch_decode_with_kv_cache(self, q: Any, caches: Any, **options: Any) -> Any:
        """Compute with a dense table."""
        torch: Any = import_module("torch")
        table, lengths = options["block_tables"], options["seq_lens"]
        assert (table.dtype, lengths.dtype) == (torch.int32, torch.uint32)
        assert options["max_seq_len"] >= int(lengths.view(torch.int32).max())
        assert options["bmm1_scale"] == q.shape[-1] ** -0.5
        assert options["kv_layout"] == "NHD"
        assert not options["workspace_buffer"].any()
        self.used.append({"pdl": options["enable_pdl"], "backend": "xqa"})
        return _attend(q, caches, list(table), lengths.view(torch.int32), options["out"])


def _attend(q: Any, caches: Any, pages: list[Any], lengths: Any, out: Any) -> Any:
    torch: Any = import_module("torch")
    group = q.shape[1] // caches[0].shape[2]
    for b, (own, length) in enumerate(zip(pages, lengths.tolist(), strict=True)):
        keys, values = (
            cache[own.long()].flatten(0, 1)[:length].float().repeat_interleave(group, dim=1)
            for cache in caches
        )
        weights = torch.einsum("hd,nhd->hn", q[b].float(), keys) * q.shape[-1] ** -0.5
        out[b] = torch.einsum("hn,nhd->hd", torch.softmax(weights, dim=-1), values).to(out.dtype)
    return out


def _as_torch(data: CaseData) -> dict[str, Any]:
    torch: Any = import_module("torch")
    shape = data.inputs["q"].shape
    given = data.inputs | {"out": np.zeros(shape, dtype=numpy_dtype("bfloat16"))}
    return {
        name: torch.from_numpy(np.array(array).view(f"i{array.itemsize}")).view(
            getattr(torch, array.dtype.name)
        )
        for name, array in given.items()
    }


@pytest.mark.parametrize(
    ("baseline", "pdl"), PATHS, ids=[f"{baseline.name}-{pdl}" for baseline, pdl in PATHS]
)
def test_each_path_is_given_the_tables_and_writes_the_given_output(
    baseline: Baseline, pdl: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = StandIn()
    monkeypatch.setitem(sys.modules, "flashinfer", ModuleType("flashinfer"))
    monkeypatch.setitem(sys.modules, "flashinfer.decode", stand_in)
    torch: Any = import_module("torch")
    data = make_case_data(CaseKey(ATTENTION, ATTENTION.workloads[0], 3, "normal"))
    tensors = _as_torch(data)
    launch = load_baseline(ATTENTION, baseline).bind(tensors, {}, pdl)
    assert not tensors["out"].any()  # binding launches nothing
    launch()
    out = tensors["out"].view(torch.int16).numpy().view(numpy_dtype("bfloat16"))
    assert judge(data, {"out": out}, poison=0xFF).finding is None
    (used,) = stand_in.used
    assert used["pdl"] is pdl
    backends = {"flashinfer": "auto", "flashinfer_tensor_cores": "fa2"}
    wanted = backends.get(baseline.name, baseline.name.removeprefix("flashinfer_"))
    assert used["backend"] == wanted
