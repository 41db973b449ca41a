"""How inputs are drawn, from what the user's code makes."""

from math import sqrt
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest

from kopt.tools.pytorch.graph import Drawing, GraphInput, ValueType
from kopt.tools.pytorch.importing.measuring import measure

Kind = Literal["input", "parameter", "buffer", "constant"]


def _measured(kind: Kind, *draws: npt.NDArray[Any]) -> Drawing:
    given = GraphInput(
        name="x",
        kind=kind,
        type=ValueType(dtype="float32", shape=draws[0].shape),
        drawing=Drawing(kind="normal"),
    )
    return measure(given, list(draws))


def _rngs() -> list[np.random.Generator]:
    return [np.random.default_rng(seed) for seed in range(3)]


def test_normal_values_are_drawn_as_such() -> None:
    drawing = _measured("input", *(rng.standard_normal((64, 64)) for rng in _rngs()))
    assert (drawing.kind, drawing.mean, drawing.deviation) == ("normal", 0.0, 1.0)


def test_uniform_values_keep_their_bounds() -> None:
    drawing = _measured("input", *(rng.random((64, 64)) for rng in _rngs()))
    assert drawing.kind == "uniform"
    assert drawing.low == pytest.approx(0.0, abs=1e-3)
    assert drawing.high == pytest.approx(1.0, abs=1e-3)


def test_what_is_never_negative_stays_so() -> None:
    drawing = _measured("input", *(rng.standard_normal((64, 64)) ** 2 for rng in _rngs()))
    assert drawing.kind == "uniform"
    assert drawing.low >= 0.0


def test_a_weight_of_ones_gets_a_spread_and_keeps_its_sign() -> None:
    drawing = _measured("parameter", *(np.ones(16) for _ in range(3)))
    assert drawing.was_constant
    assert 0.0 < drawing.low < 1.0 < drawing.high


def test_weights_within_the_inverse_root_of_their_fan_in_follow_it() -> None:
    bound = 1 / sqrt(400)
    drawing = _measured("parameter", *(rng.uniform(-bound, bound, (50, 400)) for rng in _rngs()))
    assert drawing.per_fan_in
    assert (drawing.low, drawing.high) == (-1.0, 1.0)


def test_a_table_is_part_of_the_function() -> None:
    table = np.sin(np.arange(32.0))
    assert _measured("buffer", table, table, table).kind == "stored"
    assert _measured("constant", table, table, table).kind == "stored"


def test_an_input_with_a_fixed_seed_is_drawn_all_the_same() -> None:
    same = np.random.default_rng(1).standard_normal((64, 64))
    assert _measured("input", same, same, same).kind == "normal"


def test_indices_have_their_range_and_positions_are_kept() -> None:
    drawing = _measured("input", *(rng.integers(0, 10, 500) for rng in _rngs()))
    assert (drawing.kind, drawing.low, drawing.high) == ("integers", 0, 9)
    positions = np.arange(500)
    assert _measured("input", positions, positions, positions).kind == "stored"


def test_bools_keep_their_share() -> None:
    drawing = _measured("input", *(rng.random(4000) < 0.25 for rng in _rngs()))
    assert drawing.kind == "bools"
    assert drawing.high == pytest.approx(0.25, abs=0.03)
