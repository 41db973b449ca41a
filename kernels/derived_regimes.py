"""Regimes that kopt makes of an oracle's own inputs, by dtype, role and name of the tensors.

An oracle draws `REGIMES` (input_regimes.py): zero mean, one amplitude for all columns. What that
leaves out is derived here, for any problem, packaged or a user's own:

channels: each column has an amplitude and an offset of its own, weights have both signs.
edges:    each row lies where its operator bends: mean squares near eps, scores far apart or equal,
          gates in both tails, angles of all positions; other operators get rows of different size.
          One tensor, or one half of a row, has zeros where the others have none.

Magnitudes stay within what the oracle drew: `channels` keeps the largest one of each tensor.
Integers, static tables and tensors without rows are left as they are drawn.
"""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from .ignored_elements import has_mask, is_merge
from .input_regimes import draw_values
from .oracle import Arrays, Inputs
from .problem import Problem, TensorSpec
from .row_chunks import for_row_chunks

_VALUES = ("bfloat16", "float16", "float32", "float64")
_GROUP = 16  # columns that lean to one side together: a whole block of nvfp4 has one sign
_ZERO_SHARE = 1 / 16  # of blocks that are zero in one tensor, and of scores that are alike
_FARTHEST_SCORES = np.array([24.0, 126.0, 130.0, 250.0, 1000.0], dtype=np.float32)
_SMALL_WEIGHTS = (88.0, 170.0)  # distances of scores, to the base 2: a weight may be subnormal
_CODE_GATES = (-14.0, 4.0)  # below, a block's scale is 0 beside one of ordinary size
_GATES = (-50.0, 30.0)  # beyond, silu leaves 2^-80, and an approximate exponential its accuracy
_ROPE_BASE = 10_000.0
_LAST_POSITION_LOG2 = 20.0

_Derive = Callable[[Problem, Inputs, np.random.Generator], Inputs]
Float32s = npt.NDArray[np.float32]


def derive_inputs(problem: Problem, drawn: Arrays, rng: np.random.Generator, regime: str) -> Inputs:
    """Return `drawn`, inputs of `base_regime`, as those of one of `DERIVED_REGIMES`."""
    return _DERIVED[regime](problem, dict(drawn), rng)


def base_regime(problem: Problem, regime: str) -> str:
    """Return the regime of the inputs that a derived one is made of.

    Where something may count for nothing (empty states, masked rows) `zero_blocks` draws it.
    """
    has_ignored = is_merge(problem) or has_mask(problem)
    return "zero_blocks" if regime == "edges" and has_ignored else "normal"


def is_row_data(problem: Problem, tensor: TensorSpec) -> bool:
    """Return whether a tensor holds floating-point values of rows that one call is given.

    Without a row axis every tensor does that is not static: its last axis stands for columns.
    """
    return (
        tensor.role != "out"
        and not tensor.static
        and tensor.dtype in _VALUES
        and tensor.layout == "row_major"
        and (problem.row_axis is None or problem.row_axis in tensor.shape)
    )


def _matrices(problem: Problem) -> list[str]:
    """Return the names of row data with columns."""
    tensors = (tensor for tensor in problem.tensors if is_row_data(problem, tensor))
    return [tensor.name for tensor in tensors if len(tensor.shape) > 1]


def _channels(problem: Problem, inputs: Inputs, rng: np.random.Generator) -> Inputs:
    levels: dict[int, tuple[Float32s, Float32s]] = {}
    for name in _matrices(problem):
        columns = inputs[name].shape[-1]
        if columns not in levels:  # tensors that meet element by element share their columns
            levels[columns] = _column_levels(rng, columns)
        inputs[name] = _leaning(inputs[name], *levels[columns])
    return inputs | signed_weights(problem, inputs, rng)


def signed_weights(problem: Problem, inputs: Arrays, rng: np.random.Generator) -> Inputs:
    """Return the static weights of `inputs` with both signs."""
    result: Inputs = {}
    for tensor in problem.tensors:
        if tensor.static and "weight" in tensor.name and tensor.dtype in _VALUES:
            weight = inputs[tensor.name]
            signs = rng.choice(np.array([-1, 1], dtype=np.float32), weight.shape)
            result[tensor.name] = (weight.astype(np.float32) * signs).astype(weight.dtype)
    return result


def _column_levels(rng: np.random.Generator, columns: int) -> tuple[Float32s, Float32s]:
    """Return amplitudes and offsets; most columns lean to one side, so that rows have a mean."""
    amplitudes = np.exp2(rng.integers(-2, 3, columns)).astype(np.float32)
    groups = rng.choice([1.0, 0.0, -1.0], -(-columns // _GROUP), p=[0.75, 0.125, 0.125])
    lean = rng.choice([-1.0, 1.0]) * np.repeat(groups, _GROUP)[:columns]
    offsets = lean * (1.5 + np.abs(rng.standard_normal(columns))) * amplitudes
    return amplitudes, offsets.astype(np.float32)


def _leaning(
    array: npt.NDArray[np.generic], amplitudes: Float32s, offsets: Float32s
) -> npt.NDArray[np.generic]:
    """Return `array` with the columns' levels; what is never negative keeps its sign."""
    columns = array.shape[-1]
    rows = array.reshape(-1, columns)
    values: Float32s = np.empty(rows.shape, dtype=np.float32)

    def widen(part: slice) -> tuple[float, float]:
        values[part] = rows[part]
        return float(values[part].min(initial=0.0)), float(values[part].max(initial=0.0))

    ends = np.array(for_row_chunks(len(rows), columns, widen), dtype=np.float32)
    largest = np.abs(ends).max(initial=0.0)
    if not np.isfinite(largest) or largest == 0.0:
        return array
    shift = offsets * (_root_mean_square(values, largest) if ends.min() < 0.0 else np.float32(0))

    def lean(part: slice) -> float:
        values[part] *= amplitudes
        values[part] += shift
        return float(np.abs(values[part]).max(initial=0.0))

    factor = largest / np.float32(max(for_row_chunks(len(rows), columns, lean)))
    return _scaled(values, np.full((len(rows), 1), factor), array)


def _root_mean_square(values: Float32s, largest: np.float32) -> np.float32:
    def squares(part: slice) -> float:
        relative: Float32s = values[part] / largest  # whose squares cannot overflow
        return float(np.square(relative).sum(dtype=np.float64))

    mean_square = sum(for_row_chunks(len(values), values.shape[1], squares)) / values.size
    return np.float32(np.sqrt(mean_square)) * largest


def _scaled(
    values: npt.NDArray[np.generic], factors: Float32s, like: npt.NDArray[np.generic]
) -> npt.NDArray[np.generic]:
    """Return the rows of `values`, each times its factor, in shape and dtype of `like`."""
    rows = values.reshape(-1, like.shape[-1])
    result = np.empty(rows.shape, dtype=like.dtype)

    def scale(part: slice) -> None:
        result[part] = rows[part].astype(np.float32) * factors[part]

    for_row_chunks(len(rows), rows.shape[1], scale)
    return result.reshape(like.shape)


def _edges(problem: Problem, inputs: Inputs, rng: np.random.Generator) -> Inputs:
    if is_merge(problem):
        return _zeros_in_states(_far_scores(inputs, rng), rng)
    if problem.name.startswith("silu"):
        inputs = _whole_gates(problem, inputs, rng)
    inputs = _zeros_alone(inputs, _matrices(problem), rng)
    if _eps(problem) is not None:
        return _near_eps(problem, inputs, rng)
    if problem.name.startswith("silu"):
        return inputs
    if {"cos_sin_cache", "pos_ids"} <= set(inputs):
        inputs["cos_sin_cache"] = _all_positions(inputs["cos_sin_cache"].shape, rng)
    return _row_levels(problem, inputs, rng)


def _zeros_alone(inputs: Inputs, names: Iterable[str], rng: np.random.Generator) -> Inputs:
    """Put zeros into some blocks of 16 columns of each tensor by itself."""
    for name in names:
        array = inputs[name].copy()
        blocks = (*array.shape[:-1], -(-array.shape[-1] // _GROUP))
        is_zero = rng.random(blocks) < _ZERO_SHARE
        if array.shape[-1] % _GROUP == 0:
            array.reshape(*blocks, _GROUP)[is_zero] = 0
        else:
            array[np.repeat(is_zero, _GROUP, axis=-1)[..., : array.shape[-1]]] = 0
        inputs[name] = array
    return inputs


def _zeros_in_states(inputs: Inputs, rng: np.random.Generator) -> Inputs:
    """Put zeros into the vectors of each state, but not beside a weight that may be subnormal.

    Beside zeros such a weight is the result, and honest kernels may flush it to 0.
    """
    states = ("v_a", "v_b")
    zeroed = _zeros_alone(dict(inputs), states, rng)
    scores = [np.where(np.isfinite(inputs[name]), inputs[name], 0) for name in ("s_a", "s_b")]
    distance = np.abs(scores[0] - scores[1])
    is_small = (distance > _SMALL_WEIGHTS[0]) & (distance < _SMALL_WEIGHTS[1])
    kept = {name: np.where(is_small[..., None], inputs[name], zeroed[name]) for name in states}
    return zeroed | kept


def _eps(problem: Problem) -> float | None:
    found = (float(one.value) for one in problem.scalars if one.name == "eps")
    return next((eps for eps in found if eps > 0), None)


def _near_eps(problem: Problem, inputs: Inputs, rng: np.random.Generator) -> Inputs:
    """Give each row of the sum of all matrices a mean square of eps * 2^-6 to eps * 2^6."""
    names = _matrices(problem)
    values = {name: inputs[name].astype(np.float32) for name in names}
    shapes = {array.shape for array in values.values()}
    if len(shapes) != 1:
        return _row_levels(problem, inputs, rng)
    shape = inputs[names[0]].shape
    total: Float32s = np.zeros(shape, dtype=np.float32)
    for array in values.values():
        total += array
    mean_square: Float32s = np.mean(total * total, axis=-1, keepdims=True)
    wanted = (_eps(problem) or 0.0) * np.exp2(rng.uniform(-6, 6, mean_square.shape))
    factor = np.sqrt(wanted / np.maximum(mean_square, 1e-20)).astype(np.float32)
    return {
        **inputs,
        **{name: (values[name] * factor).astype(inputs[name].dtype) for name in names},
    }


def _far_scores(inputs: Inputs, rng: np.random.Generator) -> Inputs:
    """Take the two scores of half of the heads apart, to where one state has no weight left.

    Some of the others are alike, some of these 0.
    """
    shape = inputs["s_a"].shape
    distance = rng.choice(_FARTHEST_SCORES, shape) * (rng.random(shape) < 0.5)
    distance += 30 * rng.random(shape, dtype=np.float32)
    to_a = rng.random(shape) < 0.5
    s_a = inputs["s_a"] + np.where(to_a, distance, 0)
    s_b = inputs["s_b"] + np.where(to_a, 0, distance)
    kind = rng.random(shape) / _ZERO_SHARE
    s_a = np.where(kind < 0.5, 0, s_a)
    s_b = np.where(kind < 1, s_a, s_b)
    return {**inputs, "s_a": s_a.astype(np.float32), "s_b": s_b.astype(np.float32)}


def _whole_gates(problem: Problem, inputs: Inputs, rng: np.random.Generator) -> Inputs:
    """Spread the gates, the first half of the columns, over both tails in blocks of 16."""
    low, high = _CODE_GATES if problem.tolerance == "nvfp4" else _GATES
    array = inputs["input"].copy()
    shape = (*array.shape[:-1], array.shape[-1] // 2)
    levels = rng.uniform(low, high, (*shape[:-1], -(-shape[-1] // _GROUP)))
    rows, columns = array.reshape(-1, array.shape[-1]), shape[-1]
    levels = levels.reshape(len(rows), -1)
    gates = draw_values(rng, (len(rows), columns), np.full((1, 1), 0.5, dtype=np.float32))

    def spread(part: slice) -> None:
        gates[part] += np.repeat(levels[part], _GROUP, axis=-1)[:, :columns]
        rows[part, :columns] = gates[part]

    for_row_chunks(len(rows), columns, spread)
    return {**inputs, "input": array}


def _all_positions(shape: tuple[int, ...], rng: np.random.Generator) -> Float32s:
    """Return cosines, then sines, of positions from 0 to 2^20; the first rows are quarter turns."""
    rows, columns = shape
    position = np.floor(np.exp2(rng.uniform(0, _LAST_POSITION_LOG2, rows)))
    frequency = _ROPE_BASE ** (-np.arange(0, columns, 2, dtype=np.float64) / columns)
    angle = position[:, None] * frequency
    table = np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
    turns = np.arange(min(4, rows))
    quarter = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], dtype=np.float64)[turns]
    table[turns] = np.repeat(quarter, columns // 2, axis=1)
    return rng.permutation(table).astype(np.float32)


def _row_levels(problem: Problem, inputs: Inputs, rng: np.random.Generator) -> Inputs:
    """Make rows up to 2^8 times smaller than they were drawn."""
    for name in _matrices(problem):
        array = inputs[name]
        factors = np.exp2(-8 * rng.random((*array.shape[:-1], 1))).astype(np.float32)
        inputs[name] = _scaled(array, factors.reshape(-1, 1), array)
    return inputs


_DERIVED: dict[str, _Derive] = {"channels": _channels, "edges": _edges}
DERIVED_REGIMES = tuple(_DERIVED)
"""Regimes that no oracle draws by itself."""
