"""Rolled rows commute with every packaged oracle: that is what makes timed sets verifiable."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.config.errors import ToolError
from kopt.kernels.layouts import sf_128x4_offsets, to_sf_128x4
from kopt.kernels.problem import Problem, TensorSpec
from kopt.kernels.row_rotation import (
    padded_row_axes,
    padding_axes,
    rotate_inputs,
    rotate_outputs,
)
from support.oracle_run import OracleRun, draw, expect, problems

# 33 and 5 rows are odd, 33 is no multiple of 4 and one row more than a lane of a 128x4 tile; 130
# rows reach into a second tile.
AXES: dict[str, list[dict[str, int]]] = {
    "add_rmsnorm_fp4quant": [{"B": 33, "H": 528}],
    "add_rmsnorm_fp4quant_sf128x4": [{"B": 33, "H": 528}, {"B": 130, "H": 80}],
    "nvfp4_quantize": [{"M": 33, "K": 528}, {"M": 130, "K": 80}],
    "nvfp4_quantize_linear": [{"M": 33, "K": 528}],
    "silu_mul_fp4quant": [{"B": 5, "M": 33, "K": 80}, {"B": 3, "M": 130, "K": 48}],
    "silu_mul_fp4quant_linear": [{"B": 5, "M": 33, "K": 80}],
    "gemm_bf16": [{"M": 5, "N": 3, "K": 64}],
    "attention_decode": [{"B": 3, "H": 5, "G": 2, "N": 9, "P": 16}],
    "attention_prefill": [{"I": 4, "H": 5, "G": 2, "N": 20}],
    "gemm_fp8_block_scaled": [{"M": 5, "N": 130, "K": 256}, {"M": 8, "N": 3, "K": 128}],
    "fused_add_rmsnorm": [{"B": 5, "H": 64}],
    "fused_add_rmsnorm_quant": [{"B": 5, "H": 64}],
    "fused_add_rmsnorm_fp8_block_quant": [{"B": 5, "H": 256}, {"B": 8, "H": 256}],
    "silu_and_mul": [{"B": 5, "H": 64}],
    "rope_quantize_fp8": [{"N": 5, "H": 2}],
    "merge_state": [{"N": 5, "H": 2, "D": 16}],
}
CASES = [
    (name, axes, shift) for name, cases in AXES.items() for axes in cases for shift in (1, 3, -1)
]


def _bits(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return the bytes: NaN must equal itself, and -0 must not equal 0."""
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), dtype=np.uint8)


def _rows(run: OracleRun) -> int:
    return run.workload.axes[run.problem.row_axis or ""]


def _problem_with_output(shape: tuple[str, ...], axes: dict[str, str | None]) -> Problem:
    template = problems()["fused_add_rmsnorm"]
    out = TensorSpec(name="out", role="out", dtype="float32", shape=shape)
    return template.model_copy(update={"tensors": (out,), "axes": axes, "row_axis": "B"})


def test_every_packaged_problem_is_covered() -> None:
    assert set(AXES) == set(problems())


@pytest.mark.parametrize("regime", ["normal", "mixed"])
@pytest.mark.parametrize(("name", "axes", "shift"), CASES)
def test_rotated_inputs_give_rotated_outputs(
    name: str, axes: dict[str, int], shift: int, regime: str
) -> None:
    run = draw(name, axes, regime)
    values = run.workload.axes
    moved = expect(name, rotate_inputs(run.problem, values, run.inputs, shift))
    rounded = {key: value.rounded for key, value in run.outputs.items()}
    written = {key: value.written for key, value in run.outputs.items()}
    rotated = rotate_outputs(run.problem, values, rounded, shift)
    masks = rotate_outputs(run.problem, values, written, shift)
    for key, value in moved.items():
        assert np.array_equal(masks[key], value.written), key
        # Elements that nobody writes hold whatever the oracle put there.
        assert np.array_equal(
            _bits(rotated[key][masks[key]]), _bits(value.rounded[value.written])
        ), key


@pytest.mark.parametrize("name", list(AXES))
def test_tensors_with_rows_roll_and_no_others(name: str) -> None:
    run = draw(name, AXES[name][0])
    moved = rotate_inputs(run.problem, run.workload.axes, run.inputs, 1)
    rows = {run.problem.row_axis, *padding_axes(run.problem)}
    with_rows = {t.name for t in run.problem.tensors if rows & set(t.shape)}
    assert {key for key in moved if moved[key] is not run.inputs[key]} == with_rows & set(moved)


@pytest.mark.parametrize("name", list(AXES))
def test_a_full_turn_changes_nothing(name: str) -> None:
    run = draw(name, AXES[name][0])
    values, rows = run.workload.axes, _rows(run)
    turned = rotate_inputs(run.problem, values, run.inputs, rows)
    assert all(np.array_equal(_bits(turned[key]), _bits(run.inputs[key])) for key in turned)
    rounded = {key: value.rounded for key, value in run.outputs.items()}
    back = rotate_outputs(
        run.problem, values, rotate_outputs(run.problem, values, rounded, 2), rows - 2
    )
    assert all(np.array_equal(_bits(back[key]), _bits(rounded[key])) for key in back)


@pytest.mark.parametrize("name", list(AXES))
def test_inputs_rotate_into_memory_that_is_there(name: str) -> None:
    run = draw(name, AXES[name][0])
    values = run.workload.axes
    targets = {key: np.full_like(array, 1) for key, array in run.inputs.items()}
    rotate_inputs(run.problem, values, run.inputs, 2, targets)
    fresh = rotate_inputs(run.problem, values, run.inputs, 2)
    assert all(np.array_equal(_bits(targets[key]), _bits(fresh[key])) for key in fresh)


def test_a_table_as_long_as_the_rows_stays() -> None:
    run = draw("rope_quantize_fp8", {"N": 5, "H": 2})
    moved = rotate_inputs(run.problem, run.workload.axes, run.inputs, 1)
    assert moved["cos_sin_cache"] is run.inputs["cos_sin_cache"]
    assert moved["pos_ids"].tolist() == np.roll(run.inputs["pos_ids"], 1).tolist()


def test_padding_columns_keep_their_place() -> None:
    problem = problems()["fused_add_rmsnorm_fp8_block_quant"]
    axes = {"B": 5, "H": 256, "HB": 2, "BP": 8}
    scales = np.arange(16, dtype=np.float32).reshape(2, 8)
    rolled = rotate_outputs(problem, axes, {"block_scale": scales}, 1)["block_scale"]
    assert rolled.tolist() == [[4, 0, 1, 2, 3, 5, 6, 7], [12, 8, 9, 10, 11, 13, 14, 15]]


def test_scales_of_an_input_roll_with_its_rows_and_their_padding_stays() -> None:
    run = draw("gemm_fp8_block_scaled", {"M": 5, "N": 3, "K": 256})
    scales = np.arange(16, dtype=np.float32).reshape(2, 8)
    inputs = run.inputs | {"x_scale": scales}
    rolled = rotate_inputs(run.problem, run.workload.axes, inputs, 2)["x_scale"]
    assert rolled.tolist() == [[3, 4, 0, 1, 2, 5, 6, 7], [11, 12, 8, 9, 10, 13, 14, 15]]


def test_tiles_roll_as_matrices_and_keep_their_padding() -> None:
    problem = problems()["nvfp4_quantize"]
    axes = {"M": 130, "K": 80, "KP": 40, "KB": 5}
    matrix = (np.arange(130 * 5) % 200).astype(np.uint8).reshape(130, 5)
    rolled = rotate_outputs(problem, axes, {"block_scale": to_sf_128x4(matrix, 255)}, 7)
    tiled = rolled["block_scale"]
    assert np.array_equal(tiled[sf_128x4_offsets(130, 5)], np.roll(matrix, 7, axis=0))
    assert np.count_nonzero(tiled == 255) == tiled.size - matrix.size


def test_an_output_axis_that_folds_rows_is_refused_with_what_is_allowed() -> None:
    problem = _problem_with_output(("T",), {"B": None, "T": "2 * B"})
    with pytest.raises(ToolError, match=r"axis T = 2 \* B; write align_up\(B, n\)"):
        padded_row_axes(problem)


def test_an_axis_computed_from_others_is_no_row_axis() -> None:
    problem = _problem_with_output(("B", "HB"), {"B": None, "H": None, "HB": "H // 16"})
    assert padded_row_axes(problem) == ("B",)
