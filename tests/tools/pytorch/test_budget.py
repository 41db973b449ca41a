"""The budget of sampled roundings: honest float32 passes in any order, coarser work does not."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.config.errors import SetupError
from kopt.tools.pytorch.graph import Node, Ref, Special, ValueType
from kopt.tools.pytorch.torch_library import load_torch
from support.float32_orders import (
    F32,
    SUMS,
    added_in_fp16,
    as_bf16,
    as_tf32,
    fused_product,
    norm_two_passes,
    norm_welford,
    product,
    sequential,
    softmax_online,
    softmax_two_passes,
    split_product,
)
from support.imported_graphs import Imported, node, use_of_budget

Array = npt.NDArray[Any]
Compute = Callable[[Mapping[str, Array]], Array]
MOST_HONEST = 0.9
ROWS, COLUMNS = 24, 640


def _normal(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(F32)


def _sum(folder: Path) -> tuple[Imported, dict[str, Array]]:
    inputs = {"x": _normal(ROWS, 4096)}
    return Imported.of(
        folder, inputs, node("s", "aten.sum.dim_IntList", (Ref(node="x"), (1,)), (ROWS,))
    ), inputs


def _product(folder: Path) -> tuple[Imported, dict[str, Array]]:
    inputs = {"a": _normal(ROWS, COLUMNS), "b": _normal(COLUMNS, 20, seed=2)}
    args = (Ref(node="a"), Ref(node="b"))
    return Imported.of(folder, inputs, node("m", "aten.mm.default", args, (ROWS, 20))), inputs


def _softmax(folder: Path) -> tuple[Imported, dict[str, Array]]:
    inputs = {"x": _normal(ROWS, COLUMNS) * F32(3)}
    args = (Ref(node="x"), 1, False)
    return Imported.of(
        folder, inputs, node("s", "aten._softmax.default", args, (ROWS, COLUMNS))
    ), inputs


def _norm(folder: Path) -> tuple[Imported, dict[str, Array]]:
    inputs = {
        "x": _normal(ROWS, COLUMNS) + F32(0.5),
        "weight": np.random.default_rng(3).uniform(0.65, 1.35, COLUMNS).astype(F32),
        "bias": _normal(COLUMNS, seed=4) * F32(0.2),
    }
    args = (Ref(node="x"), (COLUMNS,), Ref(node="weight"), Ref(node="bias"), 1e-5)
    return Imported.of(
        folder, inputs, node("n", "aten.native_layer_norm.default", args, (ROWS, COLUMNS))
    ), inputs


def _with_weights(normalised: Compute) -> Compute:
    return lambda given: normalised(given) * given["weight"] + given["bias"]


def _logsumexp(folder: Path) -> tuple[Imported, dict[str, Array]]:
    inputs = {"x": _normal(ROWS, COLUMNS) * F32(3)}
    args = (Ref(node="x"), (1,), True)
    return Imported.of(folder, inputs, node("s", "aten.logsumexp.default", args, (ROWS, 1))), inputs


def _added_powers(given: Mapping[str, Array], add: Callable[[Array], Array]) -> Array:
    largest = given["x"].max(1, keepdims=True)
    total = add(np.exp(given["x"] - largest))
    result: Array = np.log(total)[:, None] + largest
    return result


def _logarithm(add: Callable[[Array], Array]) -> Compute:
    return lambda given: _added_powers(given, add)


MAKERS = {
    **{"sum": _sum, "product": _product, "softmax": _softmax, "norm": _norm},
    "logsumexp": _logsumexp,
}


def _summed(add: Callable[[Array], Array]) -> Compute:
    return lambda given: add(given["x"])


def _multiplied(add: Callable[[Array], Array]) -> Compute:
    return lambda given: product(given["a"], given["b"], add)


HONEST: dict[str, tuple[str, Compute]] = {
    **{f"sum, {name}": ("sum", _summed(add)) for name, add in SUMS.items()},
    **{f"product, {name}": ("product", _multiplied(add)) for name, add in SUMS.items()},
    "product, fused": ("product", lambda given: fused_product(given["a"], given["b"])),
    "product, split": ("product", lambda given: split_product(given["a"], given["b"])),
    "softmax, two passes": ("softmax", lambda given: softmax_two_passes(given["x"])),
    "softmax, online": ("softmax", lambda given: softmax_online(given["x"])),
    "softmax, sequential": ("softmax", lambda given: softmax_two_passes(given["x"], sequential)),
    **{f"logsumexp, {name}": ("logsumexp", _logarithm(add)) for name, add in SUMS.items()},
    "norm, two passes": ("norm", _with_weights(lambda given: norm_two_passes(given["x"]))),
    "norm, welford": ("norm", _with_weights(lambda given: norm_welford(given["x"]))),
    "norm, sequential": (
        "norm",
        _with_weights(lambda given: norm_two_passes(given["x"], sequential)),
    ),
}

FAULTY: dict[str, tuple[str, Compute]] = {
    "sum in fp16": ("sum", lambda given: added_in_fp16(given["x"])),
    "sum without its tail": ("sum", lambda given: sequential(given["x"][:, :-1])),
    "sum of bf16": ("sum", lambda given: sequential(as_bf16(given["x"]))),
    "product of bf16": (
        "product",
        lambda given: fused_product(as_bf16(given["a"]), as_bf16(given["b"])),
    ),
    "product in fp16": ("product", lambda given: product(given["a"], given["b"], added_in_fp16)),
    "product without its tail": (
        "product",
        lambda given: fused_product(given["a"][:, :-1], given["b"][:-1]),
    ),
    "product of other inputs": (
        "product",
        lambda given: fused_product(given["a"][::-1], given["b"]),
    ),
    "zeros for a product": ("product", lambda given: np.zeros((ROWS, 20), dtype=F32)),
    "softmax of bf16": ("softmax", lambda given: softmax_two_passes(as_bf16(given["x"]))),
    "softmax in fp16": ("softmax", lambda given: softmax_two_passes(given["x"], added_in_fp16)),
    "logsumexp in fp16": ("logsumexp", _logarithm(added_in_fp16)),
    "logsumexp of bf16": (
        "logsumexp",
        lambda given: _added_powers({"x": as_bf16(given["x"])}, sequential),
    ),
    "the largest for logsumexp": ("logsumexp", lambda given: given["x"].max(1, keepdims=True)),
    "zeros for softmax": ("softmax", lambda given: np.zeros((ROWS, COLUMNS), dtype=F32)),
    "norm without its weight": (
        "norm",
        lambda given: norm_two_passes(given["x"]) + given["bias"],
    ),
    "norm without its bias": ("norm", lambda given: norm_two_passes(given["x"]) * given["weight"]),
    "norm of bf16": ("norm", _with_weights(lambda given: norm_two_passes(as_bf16(given["x"])))),
    "norm in fp16": (
        "norm",
        _with_weights(lambda given: norm_two_passes(given["x"], added_in_fp16)),
    ),
    "norm of other rows": ("norm", _with_weights(lambda given: norm_two_passes(given["x"][::-1]))),
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_order_is_accepted_with_room_to_spare(name: str, tmp_path: Path) -> None:
    maker, compute = HONEST[name]
    imported, inputs = MAKERS[maker](tmp_path)
    expected, got = imported.expected(inputs), compute(inputs)
    assert got.dtype == F32
    assert use_of_budget(expected, got) < MOST_HONEST
    assert imported.refused(expected, got) is None


@pytest.mark.parametrize("name", FAULTY)
def test_coarser_or_wrong_work_is_refused(name: str, tmp_path: Path) -> None:
    maker, compute = FAULTY[name]
    imported, inputs = MAKERS[maker](tmp_path)
    assert imported.refused(imported.expected(inputs), compute(inputs).astype(F32)) is not None


def test_tf32_operands_pass_where_the_problem_allows_them(tmp_path: Path) -> None:
    imported, inputs = _product(tmp_path)
    got = fused_product(*(as_tf32(inputs[name]) for name in ("a", "b")))
    assert imported.refused(imported.expected(inputs, "tf32"), got) is None
    assert imported.refused(imported.expected(inputs, "torch"), got) is not None
    assert imported.refused(imported.expected(inputs, "ieee"), got) is not None


def test_bf16_operands_do_not_pass_for_tf32(tmp_path: Path) -> None:
    imported, inputs = _product(tmp_path)
    got = fused_product(*(as_bf16(inputs[name]) for name in ("a", "b")))
    assert imported.refused(imported.expected(inputs, "tf32"), got) is not None


def test_moved_elements_have_no_slack(tmp_path: Path) -> None:
    inputs = {"x": _normal(8, 16)}
    relu = node("r", "aten.relu.default", (Ref(node="x"),), (8, 16))
    expected = Imported.of(tmp_path, inputs, relu).expected(inputs)
    assert expected.bit_exact
    assert expected.slack is None


def test_a_scalar_result_is_judged(tmp_path: Path) -> None:
    inputs = {"x": _normal(64, 100)}
    mean = node("m", "aten.mean.default", (Ref(node="x"),), ())
    imported = Imported.of(tmp_path, inputs, mean)
    expected = imported.expected(inputs)
    honest = np.asarray(sequential(inputs["x"].reshape(1, -1))[0] / F32(6400))
    assert imported.refused(expected, honest) is None
    assert imported.refused(expected, np.asarray(honest * F32(1.001))) is not None


def test_what_is_masked_away_leaves_the_rest_its_slack(tmp_path: Path) -> None:
    x = _normal(ROWS, COLUMNS)
    inputs = {"x": x, "keep": np.random.default_rng(5).random((ROWS, COLUMNS)) < 0.5}
    masked = node(
        "masked",
        "aten.where.self",
        (Ref(node="keep"), Ref(node="x"), Ref(node="low")),
        (ROWS, COLUMNS),
    )
    low = Node(
        name="low",
        op="aten.scalar_tensor.default",
        args=(Special(special="-inf"),),
        results=(ValueType(dtype="float32", shape=()),),
    )
    soft = node("s", "aten._softmax.default", (Ref(node="masked"), 1, False), (ROWS, COLUMNS))
    imported = Imported.of(tmp_path, inputs, low, masked, soft)
    expected = imported.expected(inputs)
    got = softmax_two_passes(np.where(inputs["keep"], x, F32(-np.inf)))
    assert expected.slack is not None
    assert (expected.slack[inputs["keep"]] > 0).all()
    assert use_of_budget(expected, np.where(inputs["keep"], got, expected.exact)) < MOST_HONEST
    assert imported.refused(expected, got) is None


def test_a_missing_torch_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SetupError, match=r"pip install 'kopt-mcp\[torch\]'"):
        load_torch()
