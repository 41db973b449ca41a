"""Wrong and coarse outputs are refused, by the gate that should see them, with the pattern."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels.layouts import to_sf_128x4
from kopt.kernels.rounding import (
    decode,
    pack_e2m1,
    round_to_bf16,
    round_to_e2m1,
    round_to_e4m3,
    unpack_e2m1,
)
from kopt.tools.check.mismatch import describe_pattern, likely_cause
from kopt.tools.check.output import Finding, initial_bits
from support.synthetic_check import Checked, checked, synthetic_problem

ROWS, COLUMNS = 32, 256


@pytest.fixture
def case(tmp_path: Path) -> Checked:
    return checked(synthetic_problem(tmp_path, ((ROWS, COLUMNS),)))


def _refused(case: Checked) -> tuple[Finding, str]:
    judgement = case.judge()
    finding = judgement.finding
    assert finding is not None
    reference = finding.output.reference
    return finding, describe_pattern(finding.wrong, reference.rows, reference.columns)


def _cause(case: Checked) -> str | None:
    judgement = case.judge()
    finding = judgement.finding
    assert finding is not None
    return likely_cause(finding, initial_bits(finding.output, 0xFF, None))


def test_one_scale_per_32_values_is_refused(case: Checked) -> None:
    y = decode(case.data.inputs["x"]) * 1.3
    global_scale = 448 * 6 / np.abs(y).max()
    pairs = np.abs(y).reshape(ROWS, -1, 32).max(axis=2)
    scales = round_to_e4m3(np.repeat(pairs, 2, axis=1) * global_scale / 6)
    quotient = y.reshape(ROWS, -1, 16) * global_scale / decode(scales)[..., None]
    case.outputs["block_scale"] = scales
    case.outputs["codes"] = pack_e2m1(round_to_e2m1(quotient).reshape(y.shape))
    assert _refused(case)[0].gate == "scale"


def test_a_result_that_is_a_fifth_of_a_percent_too_large_is_refused(case: Checked) -> None:
    y = decode(case.data.inputs["x"]) * 1.3
    case.outputs["y_bf16"] = round_to_bf16(y * 1.002)
    assert _refused(case)[0].gate == "bias"


def test_truncated_codes_are_refused(case: Checked) -> None:
    codes = unpack_e2m1(case.outputs["codes"])
    y = decode(case.data.inputs["x"]) * 1.3
    scale = np.repeat(decode(case.outputs["block_scale"]), 16, axis=1)
    quotient = np.abs(y) * (448 * 6 / np.abs(y).max()) / scale
    limits = np.array([0.5, 1, 1.5, 2, 3, 4, 6])
    below = (quotient[..., None] >= limits).sum(axis=-1).astype(np.uint8)
    case.outputs["codes"] = pack_e2m1((codes & 8) | below)
    assert _refused(case)[0].gate == "code"


def test_swapped_nibbles_are_refused_and_named(case: Checked) -> None:
    codes = case.outputs["codes"]
    case.outputs["codes"] = (codes >> 4) | (codes << 4)
    assert _refused(case)[0].gate == "code"
    assert "nibbles" in str(_cause(case))


def test_two_swapped_nibbles_are_refused(case: Checked) -> None:
    codes = unpack_e2m1(case.outputs["codes"])
    row, pair = np.argwhere(np.abs(codes[:, 0::2] & 7 - (codes[:, 1::2] & 7).astype(int)) > 2)[0]
    byte = case.outputs["codes"][row, pair]
    case.outputs["codes"][row, pair] = (byte >> 4) | (byte << 4)
    finding, pattern = _refused(case)
    assert finding.gate == "code"
    assert pattern == "one element" or pattern.startswith("one block of 16")


def test_codes_through_the_neighbouring_scale_are_refused(case: Checked) -> None:
    y = decode(case.data.inputs["x"]) * 1.3
    global_scale = 448 * 6 / np.abs(y).max()
    wrong_scale = np.roll(decode(case.outputs["block_scale"]), 1, axis=1)
    quotient = y.reshape(ROWS, -1, 16) * global_scale / wrong_scale[..., None]
    case.outputs["codes"] = pack_e2m1(round_to_e2m1(quotient).reshape(y.shape))
    assert _refused(case)[0].gate == "code"


def test_a_scale_two_steps_off_is_refused_even_with_codes_to_match(case: Checked) -> None:
    case.outputs["block_scale"].view(np.uint8)[3, 2] -= 2
    y = decode(case.data.inputs["x"]) * 1.3
    block = y[3, 32:48] * 448 * 6 / np.abs(y).max() / float(case.outputs["block_scale"][3, 2])
    case.outputs["codes"][3, 16:24] = pack_e2m1(round_to_e2m1(block))
    finding, pattern = _refused(case)
    assert (finding.gate, finding.tensor, pattern) == ("scale", "block_scale", "one element")


def _exact_scales(case: Checked) -> npt.NDArray[np.float64]:
    y = decode(case.data.inputs["x"]) * 1.3
    blocks = np.abs(y).reshape(ROWS, -1, 16)
    exact: npt.NDArray[np.float64] = blocks.max(axis=2) * 448 / blocks.max()
    return exact


def test_scales_that_are_all_one_step_up_are_refused_even_with_codes_to_match(
    case: Checked,
) -> None:
    scales = case.outputs["block_scale"].view(np.uint8)
    scales[scales < 0x7E] += 1  # 0x7E is 448, the largest
    y = decode(case.data.inputs["x"]) * 1.3
    quotient = y.reshape(ROWS, -1, 16) * (448 * 6 / np.abs(y).max())
    quotient /= decode(case.outputs["block_scale"])[..., None]
    case.outputs["codes"] = pack_e2m1(round_to_e2m1(quotient).reshape(y.shape))
    assert _refused(case)[0].gate == "scale"


def test_a_scale_one_step_off_beside_a_boundary_needs_codes_to_match(case: Checked) -> None:
    exact, scales = _exact_scales(case), case.outputs["block_scale"]
    below = (scales.view(np.uint8) - 1).view(scales.dtype)
    boundary = (decode(scales) + decode(below)) / 2
    row, block = np.argwhere((exact > boundary) & (exact < boundary * 1.01))[0]
    scales.view(np.uint8)[row, block] -= 1
    finding, _ = _refused(case)
    assert (finding.gate, finding.tensor) == ("code", "codes")


def test_a_nan_scale_is_refused(case: Checked) -> None:
    case.outputs["block_scale"].view(np.uint8)[0, 0] = 0x7F
    assert _refused(case)[0].gate == "finite"


def test_a_negative_scale_is_refused(case: Checked) -> None:
    case.outputs["block_scale"].view(np.uint8)[0, 0] |= 0x80
    assert _refused(case)[0].gate == "scale"


def test_row_major_scales_in_a_tiled_tensor_are_refused(tmp_path: Path) -> None:
    case = checked(synthetic_problem(tmp_path, ((128, 64),), layout="sf_128x4"))
    tiled = case.outputs["block_scale"]
    offsets = case.data.references["block_scale"].offsets
    assert offsets is not None
    case.outputs["block_scale"] = tiled.reshape(-1)[offsets]
    assert _refused(case)[0].gate == "scale"


def test_written_padding_of_tiled_scales_is_refused(tmp_path: Path) -> None:
    case = checked(synthetic_problem(tmp_path, ((8, 64),), layout="sf_128x4"))
    padding = np.flatnonzero(~np.asarray(case.data.references["block_scale"].written))
    case.outputs["block_scale"].view(np.uint8)[padding[3]] = 0
    finding, _ = _refused(case)
    assert (finding.gate, finding.wrong.tolist()) == ("untouched", [padding[3]])


def test_right_tiled_scales_pass(tmp_path: Path) -> None:
    case = checked(synthetic_problem(tmp_path, ((8, 64),), layout="sf_128x4"))
    row_major = checked(synthetic_problem(tmp_path / "linear", ((8, 64),))).outputs["block_scale"]
    tiled = to_sf_128x4(row_major.view(np.uint8), 0xFF)
    assert np.array_equal(case.outputs["block_scale"].view(np.uint8), tiled)
    assert case.judge().finding is None


def test_half_of_every_row_computed_is_refused_as_a_tail(case: Checked) -> None:
    case.outputs["codes"][:, COLUMNS // 4 :] = 0
    finding, pattern = _refused(case)
    assert finding.gate == "code"
    assert "tail only, the last 128 elements (from 128) of every row" in pattern


def test_rows_off_by_one_are_refused_and_named(case: Checked) -> None:
    case.outputs["y_bf16"] = np.roll(case.outputs["y_bf16"], -1, axis=0)
    assert _refused(case)[0].tensor == "y_bf16"
    assert "the next row" in str(_cause(case))


def test_every_16th_value_wrong_is_refused_with_its_pattern(case: Checked) -> None:
    case.outputs["y_bf16"][:, 5::16] *= 2
    finding, pattern = _refused(case)
    assert finding.gate == "ulp"
    assert pattern == "every 16th element, from 5 of every row"


def test_bf16_values_three_steps_off_are_refused(case: Checked) -> None:
    case.outputs["y_bf16"].view(np.uint16)[...] += 3
    assert _refused(case)[0].gate == "ulp"


def test_bf16_values_truncated_twice_are_refused_as_a_whole(case: Checked) -> None:
    bits = case.outputs["y_bf16"].view(np.uint16)
    bits[...] = np.where(bits & 1, bits + 1, bits - 1)
    assert _refused(case)[0].gate == "total_l2"


def test_one_coarse_row_is_refused_as_a_row(case: Checked) -> None:
    bits = case.outputs["y_bf16"].view(np.uint16)
    bits[7] = np.where(bits[7] & 1, bits[7] + 2, bits[7] - 2)
    finding, pattern = _refused(case)
    assert (finding.gate, pattern) == ("row_l2", "whole rows: row 7")


def test_bf16_through_fp8_is_refused(case: Checked) -> None:
    case.outputs["y_bf16"] = round_to_bf16(decode(case.outputs["y_fp8"]))
    assert _refused(case)[0].tensor == "y_bf16"


def test_fp8_codes_rounded_toward_zero_are_refused(case: Checked) -> None:
    y = decode(case.data.inputs["x"]) * 1.3
    bits = case.outputs["y_fp8"].view(np.uint8)
    bits[np.abs(decode(case.outputs["y_fp8"])) > np.abs(y)] -= 1
    finding, _ = _refused(case)
    assert (finding.gate, finding.tensor) == ("code", "y_fp8")


def test_a_wrong_sign_is_refused(case: Checked) -> None:
    nonzero = int(np.flatnonzero(decode(case.outputs["y_fp8"]).ravel())[0])
    case.outputs["y_fp8"].view(np.uint8).reshape(-1)[nonzero] ^= 0x80
    assert _refused(case)[0].gate == "code"


def test_a_residual_one_bit_off_is_refused(case: Checked) -> None:
    case.outputs["kept"].view(np.uint16)[4, 9] += 1
    finding, pattern = _refused(case)
    assert (finding.gate, finding.tensor, pattern) == ("exact", "kept", "one element")


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["y_bf16", "kept", "total"])
def test_nan_and_infinity_are_refused(case: Checked, name: str, value: float) -> None:
    case.outputs[name].reshape(-1)[3] = value
    assert _refused(case)[0].gate == "finite"


def test_nan_that_has_the_bits_of_the_poison_is_refused_in_every_float_output(
    case: Checked,
) -> None:
    for name in ("y_bf16", "y_fp8", "total", "block_scale"):
        array = case.outputs[name]
        kept = array.copy()
        array.view(f"u{array.itemsize}").reshape(-1)[0] = (1 << (8 * array.itemsize)) - 1
        assert _refused(case)[0].gate == "finite"
        case.outputs[name] = kept


def test_a_float32_result_off_by_a_thousandth_is_refused(case: Checked) -> None:
    case.outputs["total"][2] *= np.float32(1.001)
    finding, _ = _refused(case)
    assert (finding.gate, finding.tensor) == ("float32", "total")


def test_a_touched_element_outside_the_result_is_refused(case: Checked) -> None:
    case.outputs["total"][-1] = 0
    finding, _ = _refused(case)
    assert (finding.gate, finding.wrong.tolist()) == ("untouched", [ROWS - 1])


def test_all_zero_codes_are_named(case: Checked) -> None:
    case.outputs["codes"][...] = 0
    assert _cause(case) == "the wrong elements are all 0"
