"""What attention_prefill's baseline.py gives to libraries: bounds, masks, outputs."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from kopt.kernels.baseline_loader import load_baseline
from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.problem import Baseline, Workload
from kopt.kernels.problem_loader import load_problems
from kopt.tools.check.case_data import CaseData, CaseKey, make_case_data
from kopt.tools.check.judge import judge

pytestmark = pytest.mark.slow  # torch is loaded

PREFILL = load_problems()["attention_prefill"]
BASELINES = {baseline.name: baseline for baseline in PREFILL.baselines}
WORKLOADS = {workload.name: workload for workload in PREFILL.workloads}
OF_FLASHINFER = [
    (baseline, pdl)
    for baseline in PREFILL.baselines
    for pdl in baseline.pdl
    if baseline.name.startswith("flashinfer_")
]
RAGGED, EQUAL = WORKLOADS["batch3_ragged"], WORKLOADS["batch2_50"]


class FlashInferStandIn(ModuleType):
    """The ragged wrapper of `flashinfer.prefill`, in torch."""

    def __init__(self) -> None:
        """Note nothing yet."""
        super().__init__("flashinfer.prefill")
        self.used: list[dict[str, Any]] = []
        """Options of each call."""
        stand_in = self

        class BatchPrefillWithRaggedKVCacheWrapper:
            """Computes with what it was planned with."""

            def __init__(self, workspace: Any, layout: str, *, backend: str) -> None:
                assert layout == "NHD"
                assert workspace.numel() >= 128 << 20
                self.backend = backend

            def plan(self, qo: Any, kv: Any, *sizes: int, causal: bool, **dtypes: Any) -> None:
                assert {str(dtype) for dtype in dtypes.values()} == {"torch.bfloat16"}
                assert causal
                assert qo.tolist() == kv.tolist()
                self.bounds, self.sizes = qo.tolist(), sizes

            def run(self, q: Any, k: Any, v: Any, *, out: Any, enable_pdl: bool) -> Any:
                assert self.sizes == (q.shape[1], k.shape[1], q.shape[2])
                stand_in.used.append({"backend": self.backend, "pdl": enable_pdl})
                return out.copy_(_attend((q, k, v), self.bounds))

        self.BatchPrefillWithRaggedKVCacheWrapper = BatchPrefillWithRaggedKVCacheWrapper


def _attend(given: tuple[Any, Any, Any], bounds: list[int]) -> Any:
    """Return causal attention of tensors (tokens, heads, 128), in float32."""
    torch: Any = import_module("torch")
    q, k, v = given
    group, parts = q.shape[1] // k.shape[1], list[Any]()
    for first, end in pairwise(bounds):
        keys, values = (one[first:end].float().repeat_interleave(group, 1) for one in (k, v))
        logits = torch.einsum("ihd,jhd->hij", q[first:end].float(), keys) * q.shape[-1] ** -0.5
        later = torch.ones(logits.shape[1:], dtype=torch.bool).triu(1)
        weights = torch.softmax(logits.masked_fill(later, float("-inf")), dim=-1)
        parts.append(torch.einsum("hij,jhd->ihd", weights, values))
    return torch.cat(parts).to(q.dtype)


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


def _result_passes(baseline: Baseline, pdl: bool, workload: Workload) -> bool:
    """Return whether what a path launches gives, or writes, passes the gates."""
    torch: Any = import_module("torch")
    data = make_case_data(CaseKey(PREFILL, workload, 3, "normal"))
    tensors = _as_torch(data)
    launch = load_baseline(PREFILL, baseline).bind(tensors, {}, pdl)
    assert not tensors["out"].any()  # binding launches nothing
    given: Any = launch()
    result: Any = tensors["out"] if baseline.name.startswith("flashinfer") else given["out"]
    assert result.shape == tensors["out"].shape
    out = result.contiguous().view(torch.int16).numpy().view(numpy_dtype("bfloat16"))
    return judge(data, {"out": out}, poison=0xFF).finding is None


@pytest.mark.parametrize(
    ("baseline", "pdl"), OF_FLASHINFER, ids=[f"{one.name}-{pdl}" for one, pdl in OF_FLASHINFER]
)
def test_each_path_of_flashinfer_is_given_the_bounds_and_writes_the_given_output(
    baseline: Baseline, pdl: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = FlashInferStandIn()
    monkeypatch.setitem(sys.modules, "flashinfer", ModuleType("flashinfer"))
    monkeypatch.setitem(sys.modules, "flashinfer.prefill", stand_in)
    assert _result_passes(baseline, pdl, RAGGED)
    backend = baseline.name.removeprefix("flashinfer_")
    assert stand_in.used == [{"backend": backend, "pdl": pdl}]


@pytest.mark.parametrize("gives_sums", [False, True])
def test_flash_attention_3_is_given_the_bounds_and_the_longest(
    gives_sums: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attend(q: Any, k: Any, v: Any, *bounds: Any, causal: bool) -> Any:
        of_q, of_k, longest_q, longest_k = bounds
        assert causal
        assert of_q.tolist() == of_k.tolist()
        assert longest_q == longest_k == int(of_q.diff().max())
        result = _attend((q, k, v), of_q.tolist())
        return (result, None) if gives_sums else result

    stand_in: Any = ModuleType("flash_attn_interface")
    stand_in.flash_attn_varlen_func = attend
    monkeypatch.setitem(sys.modules, "flash_attn_interface", stand_in)
    assert _result_passes(BASELINES["flash_attn_3"], False, RAGGED)


@pytest.mark.parametrize("name", ["torch_flash", "torch_cudnn"])
def test_torch_computes_sequences_of_one_length_with_the_chosen_kernels(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels: Any = import_module("torch.nn.attention")
    chosen: list[Any] = []

    @contextmanager
    def choose(backend: Any) -> Generator[None]:
        chosen.append(backend)
        yield

    monkeypatch.setattr(kernels, "sdpa_kernel", choose)
    assert _result_passes(BASELINES[name], False, EQUAL)
    assert [one.name for one in chosen] == [f"{name.removeprefix('torch_').upper()}_ATTENTION"]


@pytest.mark.parametrize("name", ["torch_flash", "torch_cudnn"])
def test_torch_is_left_out_where_lengths_differ(name: str) -> None:
    with pytest.raises(NotImplementedError, match="one length"):
        _result_passes(BASELINES[name], False, RAGGED)


@pytest.mark.parametrize("name", [one for one in BASELINES if one != "flashinfer_fa2"])
def test_a_path_without_dependent_launch_refuses_it(name: str) -> None:
    with pytest.raises(NotImplementedError, match="programmatic"):
        _result_passes(BASELINES[name], True, EQUAL)
