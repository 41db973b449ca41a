"""Budgets of outputs of a million elements: what is rare in one of them is there in all."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.tools.pytorch import rounding_noise
from kopt.tools.pytorch.budget import expected_within
from kopt.tools.pytorch.graph import Ref
from support.float32_orders import as_tf32
from support.imported_graphs import Imported, node

Array = npt.NDArray[Any]
ROWS, INNER, COLUMNS = 2048, 64, 512


def _relu_of_product(folder: Path) -> tuple[Imported, dict[str, Array]]:
    """Return relu(a @ b - c), and inputs.

    Of 32 elements one is about 0 before the relu, up to 4 deviations of TF32 below it; the others
    are far below.
    """
    rng = np.random.default_rng(5)
    inputs: dict[str, Array] = {
        "a": rng.standard_normal((ROWS, INNER)).astype(np.float32),
        "b": rng.standard_normal((INNER, COLUMNS)).astype(np.float32),
    }
    below = np.full((ROWS, COLUMNS), 1.0)
    below[:, ::32] = rng.uniform(0.0, 4.0, below[:, ::32].shape) * _deviation(inputs)[:, ::32]
    inputs["c"] = (inputs["a"].astype(np.float64) @ inputs["b"] + below).astype(np.float32)
    shape = (ROWS, COLUMNS)
    nodes = (
        node("m", "aten.mm.default", (Ref(node="a"), Ref(node="b")), shape),
        node("s", "aten.sub.Tensor", (Ref(node="m"), Ref(node="c")), shape),
        node("r", "aten.relu.default", (Ref(node="s"),), shape),
    )
    return Imported.of(folder, inputs, *nodes), inputs


def _deviation(inputs: dict[str, Array]) -> npt.NDArray[np.float64]:
    """Return the standard deviation that operands in TF32 leave in a @ b."""
    squares = np.square(inputs["a"]).astype(np.float64) @ np.square(inputs["b"])
    return rounding_noise.TF32 * np.sqrt(2.0 * squares)


def _in_tf32(inputs: dict[str, Array]) -> Array:
    one, other = (as_tf32(inputs[name]).astype(np.float64) for name in ("a", "b"))
    return np.maximum((one @ other).astype(np.float32) - inputs["c"], np.float32(0.0))


def _refused(imported: Imported, inputs: dict[str, Array]) -> int:
    """Return how many elements of the product with TF32 operands are outside their slack."""
    expected = imported.expected(inputs, "tf32")
    assert expected.slack is not None
    error = np.abs(_in_tf32(inputs) - expected.exact)
    return int(np.count_nonzero(error > expected.slack))


def test_elements_next_to_a_kink_may_be_on_the_other_side_of_it(tmp_path: Path) -> None:
    imported, inputs = _relu_of_product(tmp_path)
    assert _refused(imported, inputs) <= 2


def test_runs_of_honest_size_alone_do_not_see_kinks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported, inputs = _relu_of_product(tmp_path)
    monkeypatch.setattr(rounding_noise, "WIDE_SCALE", 1.0)
    assert _refused(imported, inputs) > 200


def test_elements_left_over_at_the_end_of_a_row_know_as_much_as_others() -> None:
    rng = np.random.default_rng(2)
    shape, runs = (60_000, 66), 4
    deviation = np.sqrt(np.square(rng.standard_normal((runs, *shape))).mean(axis=0))
    expected = expected_within(np.ones(shape), deviation, "float32", has_few_runs=True)
    assert expected.slack is not None
    honest = np.abs(rng.standard_normal(shape))
    assert (honest / expected.slack).max() < 0.9
    assert expected.slack[:, 64:].min() > 0.7 * expected.slack[:, :64].min()


def test_the_slack_of_an_ordinary_element_is_a_dozen_deviations(tmp_path: Path) -> None:
    imported, inputs = _relu_of_product(tmp_path)
    inputs["c"] -= np.float32(100.0)
    expected = imported.expected(inputs, "tf32")
    assert expected.slack is not None
    assert 11.0 < np.median(expected.slack / _deviation(inputs)) < 13.0


def test_elements_next_to_the_edge_of_a_domain_are_not_refused(tmp_path: Path) -> None:
    imported, inputs = _relu_of_product(tmp_path)
    above = np.random.default_rng(6).uniform(6.0, 8.0, (ROWS, COLUMNS)) * _deviation(inputs)
    product = inputs["a"].astype(np.float64) @ inputs["b"]
    inputs["c"] = (product - above).astype(np.float32)
    logarithm = node("r", "aten.log.default", (Ref(node="s"),), (ROWS, COLUMNS))
    nodes = (*imported.graph.nodes[:2], logarithm)
    expected = Imported.of(tmp_path, inputs, *nodes).expected(inputs, "tf32")
    assert expected.slack is not None
    one, other = (as_tf32(inputs[name]).astype(np.float64) for name in ("a", "b"))
    got = np.log(one @ other - inputs["c"])
    assert np.count_nonzero(np.abs(got - expected.exact) > expected.slack) <= 1
