"""Budgets of sums of rounded terms: where terms of both signs cancel, their errors do too."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from kopt.config.errors import ToolError
from kopt.tools.pytorch import oracle
from kopt.tools.pytorch.graph import Node, Ref, ValueType
from support.float32_orders import F32, SUMS, as_tf32, fused_product, strided
from support.imported_graphs import Imported, node, use_of_budget

pytestmark = pytest.mark.slow  # functions are imported by PyTorch
Array = npt.NDArray[Any]
Inputs = dict[str, Array]
BF16 = ml_dtypes.bfloat16
MOST_HONEST = 0.9
ROWS, COLUMNS = 2048, 64
STORED: dict[str, npt.DTypeLike] = {"bfloat16": BF16, "float32": F32}


def _scaled_sum(
    folder: Path, shape: tuple[int, int], out: str, seed: int
) -> tuple[Imported, Inputs]:
    """Return sum(bf16(x * w)), whose result has the dtype `out`."""
    rng = np.random.default_rng(seed)
    inputs = {
        "x": rng.standard_normal(shape).astype(BF16),
        "w": rng.standard_normal(shape[1]).astype(BF16),
    }
    nodes = [node("p", "aten.mul.Tensor", (Ref(node="x"), Ref(node="w")), shape, "bfloat16")]
    if out == "float32":
        nodes.append(node("wide", "aten._to_copy.default", (Ref(node="p"),), shape))
    nodes.append(node("s", "aten.sum.default", (Ref(node=nodes[-1].name),), (), out))
    return Imported.of(folder, inputs, *nodes, dtype="bfloat16"), inputs


def _terms(inputs: Inputs, *, is_stored: bool) -> Array:
    products: Array = inputs["x"].astype(F32) * inputs["w"].astype(F32)
    return products.astype(BF16).astype(F32) if is_stored else products


def _total(terms: Array, out: str, order: str = "strided") -> Array:
    add = SUMS[order]
    return np.asarray(add(add(terms)), dtype=STORED[out])


@pytest.mark.parametrize("out", STORED)
@pytest.mark.parametrize("is_stored", [True, False])
@pytest.mark.parametrize("order", SUMS)
def test_a_long_sum_of_bf16_terms_passes_in_any_order(
    out: str, is_stored: bool, order: str, tmp_path: Path
) -> None:
    imported, inputs = _scaled_sum(tmp_path, (ROWS, COLUMNS), out, 1)
    expected = imported.expected(inputs)
    got = _total(_terms(inputs, is_stored=is_stored), out, order)
    assert use_of_budget(expected, got) < MOST_HONEST
    assert imported.refused(expected, got) is None


@pytest.mark.parametrize("out", STORED)
@pytest.mark.parametrize("seed", range(3))
def test_a_long_sum_that_leaves_terms_out_is_refused(out: str, seed: int, tmp_path: Path) -> None:
    imported, inputs = _scaled_sum(tmp_path, (ROWS, COLUMNS), out, seed)
    expected, terms = imported.expected(inputs), _terms(inputs, is_stored=True)
    # The sum of some columns is less than the output's own rounding to bf16.
    heaviest = int(np.argmax(np.abs(terms.sum(axis=0))))
    short = {
        "column": np.delete(terms, heaviest, axis=1),
        "quarter of the columns": terms[:, : -COLUMNS // 4],
        "last rows": terms[:-64],
        "everything": np.zeros_like(terms),
    }
    accepted = [
        what for what, left in short.items() if not imported.refused(expected, _total(left, out))
    ]
    assert accepted == []


def test_slack_of_a_long_sum_grows_as_the_root_of_its_squares(tmp_path: Path) -> None:
    imported, inputs = _scaled_sum(tmp_path, (ROWS, COLUMNS), "float32", 1)
    slack = imported.expected(inputs).slack
    assert slack is not None
    rounding = 2.0**-7 / 24**0.5
    honest = rounding * float(np.sqrt(np.square(_terms(inputs, is_stored=True)).sum()))
    assert 4.0 * honest < float(slack) < 16.0 * honest


@pytest.mark.parametrize("out", STORED)
def test_an_honest_scalar_is_no_average_and_has_the_slack_of_an_element(
    out: str, tmp_path: Path
) -> None:
    """One result in eighty is beyond 2.5 deviations, as normal errors are."""
    refused: list[int] = []
    for seed in range(60):
        imported, inputs = _scaled_sum(tmp_path, (32, 64), out, seed)
        got = _total(_terms(inputs, is_stored=True), out)
        if imported.refused(imported.expected(inputs), got) is not None:
            refused.append(seed)
    assert refused == []


@pytest.mark.parametrize("seed", range(3))
def test_a_sum_of_a_tf32_product_has_room_for_tf32_and_for_nothing_else(
    seed: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(seed)
    inputs = {
        "a": rng.standard_normal((64, 256)).astype(F32),
        "b": rng.standard_normal((256, 64)).astype(F32),
    }
    multiplied = node("m", "aten.mm.default", (Ref(node="a"), Ref(node="b")), (64, 64))
    summed = node("s", "aten.sum.default", (Ref(node="m"),), ())
    imported = Imported.of(tmp_path, inputs, multiplied, summed)
    expected = imported.expected(inputs, "tf32")
    rounded = fused_product(as_tf32(inputs["a"]), as_tf32(inputs["b"]))
    for honest in (rounded, fused_product(inputs["a"], inputs["b"])):
        assert use_of_budget(expected, _total(honest, "float32")) < MOST_HONEST
        assert imported.refused(expected, _total(honest, "float32")) is None
    for short in (rounded[:, :-1], rounded[:, :-16], rounded[:-8], np.zeros_like(rounded)):
        assert imported.refused(expected, _total(short, "float32")) is not None


@pytest.mark.parametrize("many_flops", [1, 1 << 40], ids=["few runs", "all runs"])
def test_of_a_million_tf32_products_none_is_refused_and_bf16_is(
    many_flops: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oracle, "MANY_FLOPS", many_flops)
    rng, side, depth = np.random.default_rng(1), 1024, 64
    inputs = {
        "a": rng.standard_normal((side, depth)).astype(F32),
        "b": rng.standard_normal((depth, side)).astype(F32),
    }
    multiplied = node("m", "aten.mm.default", (Ref(node="a"), Ref(node="b")), (side, side))
    imported = Imported.of(tmp_path, inputs, multiplied)
    expected = imported.expected(inputs, "tf32")
    honest = as_tf32(inputs["a"]) @ as_tf32(inputs["b"])
    assert use_of_budget(expected, honest) < 1.0
    assert imported.refused(expected, honest) is None
    coarse = inputs["a"].astype(BF16).astype(F32) @ inputs["b"].astype(BF16).astype(F32)
    short = inputs["a"][:, :-1] @ inputs["b"][:-1]
    assert [imported.refused(expected, one) is not None for one in (coarse, short)] == [True, True]


@pytest.mark.parametrize("mean", [5.0, 100.0, 1000.0])
def test_a_folded_batch_norm_passes_though_its_addend_moves_whole_channels(
    mean: float, tmp_path: Path
) -> None:
    rng, channels, shape = np.random.default_rng(1), 4, (2, 4, 48, 48)
    inputs = {
        "x": (rng.standard_normal(shape) + mean).astype(F32),
        "weight": rng.uniform(0.6, 1.4, channels).astype(F32),
        "bias": rng.standard_normal(channels).astype(F32),
        "mean": (mean + 0.1 * rng.standard_normal(channels)).astype(F32),
        "variance": rng.uniform(0.6, 1.4, channels).astype(F32),
    }
    none = ValueType(dtype="float32", shape=(0,))
    norm = Node(
        name="n",
        op="aten._native_batch_norm_legit_no_training.default",
        args=(*(Ref(node=name) for name in inputs), 0.1, 1e-5),
        results=(ValueType(dtype="float32", shape=shape), none, none),
    )
    pooled = node("pooled", "aten.mean.dim", (Ref(node="n"), (2, 3)), shape[:2])
    imported = Imported.of(tmp_path, inputs, norm, pooled)
    expected = imported.expected(inputs)
    factor = inputs["weight"] / np.sqrt(inputs["variance"] + F32(1e-5))
    addend = inputs["bias"] - inputs["mean"] * factor
    folded = inputs["x"] * factor[:, None, None] + addend[:, None, None]
    assert folded.dtype == F32
    got = strided(folded.reshape(*shape[:2], -1)) / F32(48 * 48)
    assert use_of_budget(expected, got) < MOST_HONEST
    assert imported.refused(expected, got) is None
    assert imported.refused(expected, got - F32(0.01)) is not None


@pytest.mark.parametrize("shape", [(1024, 1), (64, 1), (256, 3)])
def test_rows_of_few_elements_pass_whatever_the_seed(
    shape: tuple[int, int], tmp_path: Path
) -> None:
    refused: list[tuple[int, str]] = []
    for seed in range(12):
        imported, inputs = _difference(tmp_path, shape, seed)
        first, second = (_product_of(inputs, *names) for names in ("xw", "yv"))
        gate = imported.refused(imported.expected(inputs), (first - second).astype(BF16))
        if gate is not None:
            refused.append((seed, gate))
    assert refused == []


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_one_element_are_refused_where_the_work_is_coarse_or_wrong(
    seed: int, tmp_path: Path
) -> None:
    imported, inputs = _difference(tmp_path, (1024, 1), seed)
    expected = imported.expected(inputs)
    first, second = (_product_of(inputs, *names) for names in ("xw", "yv"))
    coarse = first.astype(ml_dtypes.float8_e4m3fn).astype(F32)
    last_missing = np.where(np.arange(1024)[:, None] < 1023, first - second, 0.0)
    for faulty in (coarse - second, first + second, first, 0.0 * first, last_missing):
        assert imported.refused(expected, faulty.astype(BF16)) is not None


def _difference(folder: Path, shape: tuple[int, int], seed: int) -> tuple[Imported, Inputs]:
    """Return bf16(bf16(x * w) - bf16(y * v))."""
    rng = np.random.default_rng(seed)
    inputs = {name: rng.standard_normal(shape).astype(BF16) for name in "xwyv"}
    multiply, subtract = "aten.mul.Tensor", "aten.sub.Tensor"
    nodes = (
        node("p", multiply, (Ref(node="x"), Ref(node="w")), shape, "bfloat16"),
        node("q", multiply, (Ref(node="y"), Ref(node="v")), shape, "bfloat16"),
        node("r", subtract, (Ref(node="p"), Ref(node="q")), shape, "bfloat16"),
    )
    return Imported.of(folder, inputs, *nodes, dtype="bfloat16"), inputs


def _product_of(inputs: Inputs, left: str, right: str) -> Array:
    product: Array = inputs[left].astype(F32) * inputs[right].astype(F32)
    return product.astype(BF16).astype(F32)


@pytest.mark.parametrize("op", ["aten.reciprocal.default", "aten.log.default"])
def test_a_result_that_roundings_make_nan_or_infinite_judges_no_kernel(
    op: str, tmp_path: Path
) -> None:
    inputs = {"x": np.array([1.0, 3.0, -4.0], dtype=F32)}
    summed = node("s", "aten.sum.default", (Ref(node="x"),), ())
    imported = Imported.of(tmp_path, inputs, summed, node("r", op, (Ref(node="s"),), ()))
    with pytest.raises(ToolError, match="NaN or infinity: no kernel can be judged by it"):
        imported.expected(inputs)
