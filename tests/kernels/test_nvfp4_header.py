"""nvfp4_utils.cuh, built for the CPU, against rounding.py: the same bits everywhere."""

import subprocess
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from kopt.config.settings import settings_from_environment
from kopt.kernels.layouts import sf_128x4_offsets
from kopt.kernels.rounding import decode_e2m1, round_to_e2m1, round_to_e4m3
from kopt.tools.cuda.include_tree import cuda_include_folders
from support.narrow_values import e4m3_magnitudes

E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
HEADER_FOLDER = Path(__file__).parents[2] / "kernels" / "common"

PROGRAM = """
void kopt_sim_cpu_body(const char*) {}  // the simulator's, which is not linked here
#include <kopt/nvfp4_utils.cuh>
#include <cstdio>
#include <vector>

// Reads floats, writes for each one int per conversion.
int main() {
  std::vector<int> table;
  float x;
  std::vector<float> all;
  while (std::fread(&x, sizeof x, 1, stdin) == 1) all.push_back(x);
  for (std::size_t i = 0; i < all.size(); ++i) {
    float eight[8];
    for (std::size_t j = 0; j < 8; ++j) eight[j] = all[(i + j) % all.size()];
    table.push_back(static_cast<int>(kopt::float_to_e2m1(all[i])));
    table.push_back(static_cast<int>(kopt::float_to_e2m1_software(all[i])));
    table.push_back(kopt::float2_to_e2m1x2(make_float2(eight[0], eight[1])));
    table.push_back(static_cast<int>(kopt::floats_to_e2m1x8(eight)));
    table.push_back(kopt::float_to_e4m3(all[i]));
    table.push_back(kopt::block_scale(all[i], 3.0f));
  }
  std::fwrite(table.data(), sizeof(int), table.size(), stdout);
  for (unsigned code = 0; code < 256; ++code) {
    const unsigned char scale = static_cast<unsigned char>(code);
    const float values[3] = {kopt::e4m3_to_float(scale), kopt::e2m1_to_float(code & 15u),
                             kopt::code_multiplier(scale, 3.0f)};
    std::fwrite(values, sizeof(float), 3, stdout);
  }
  for (int row = 0; row < 300; ++row) {
    for (int block = 0; block < 7; ++block) {
      const int offset = kopt::sf_128x4_offset(row, block, 7);
      std::fwrite(&offset, sizeof offset, 1, stdout);
    }
  }
}
"""


@dataclass(frozen=True)
class HeaderRun:
    """What the header made of `inputs`."""

    inputs: npt.NDArray[np.float32]
    codes: npt.NDArray[np.int32]
    """(inputs, 6): float_to_e2m1, its software form, x2, x8, float_to_e4m3, block_scale."""
    decoded: npt.NDArray[np.float32]
    """(256, 3): e4m3_to_float, e2m1_to_float, code_multiplier."""
    offsets: npt.NDArray[np.int32]


def _interesting(magnitudes: tuple[float, ...]) -> npt.NDArray[np.float32]:
    """Return all values, midpoints and their float32 neighbours, of both signs."""
    midpoints = [(low + high) / 2 for low, high in pairwise(magnitudes)]
    centers = np.array([*magnitudes, *midpoints], dtype=np.float32)
    around = [np.nextafter(centers, np.float32(to)) for to in (-np.inf, np.inf)]
    positive = np.concatenate([centers, *around])
    return np.concatenate([positive, -positive])


def _inputs() -> npt.NDArray[np.float32]:
    rng = np.random.default_rng(4)
    special = np.array([0.0, np.inf, np.nan, 1e-45, 1e-38, 3e38, 7.0, 464.0, 480.0], np.float32)
    spread = rng.standard_normal(4000) * np.exp2(rng.uniform(-12, 12, 4000))
    narrow = [_interesting(E2M1), _interesting(e4m3_magnitudes())]
    return np.concatenate([special, -special, *narrow, spread.astype(np.float32)])


@pytest.fixture(scope="module")
def header_run(tmp_path_factory: pytest.TempPathFactory) -> HeaderRun:
    """Return the results of one program, built as the simulator builds candidates."""
    folder = tmp_path_factory.mktemp("header")
    (folder / "kopt").symlink_to(HEADER_FOLDER)
    (folder / "main.cpp").write_text(PROGRAM)
    includes = [f"-isystem{path}" for path in cuda_include_folders()]
    command = [settings_from_environment().gxx, "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror"]
    command += ["-DKOPT_SIM", f"-I{folder}", *includes, "main.cpp", "-o", "main"]
    subprocess.run(command, cwd=folder, check=True, timeout=120)
    inputs = _inputs()
    run = subprocess.run(
        [folder / "main"], input=inputs.tobytes(), capture_output=True, check=True, timeout=60
    )
    words = np.frombuffer(run.stdout, dtype=np.int32)
    codes, rest = words[: 6 * inputs.size], words[6 * inputs.size :]
    decoded = rest[: 3 * 256].view(np.float32).reshape(256, 3)
    return HeaderRun(inputs, codes.reshape(-1, 6), decoded, rest[3 * 256 :])


def test_e2m1_codes_are_correctly_rounded(header_run: HeaderRun) -> None:
    expected = round_to_e2m1(header_run.inputs)
    assert (header_run.codes[:, 0] == expected).all()
    assert (header_run.codes[:, 1] == expected).all()


def test_packed_codes_hold_the_first_value_in_the_low_nibble(header_run: HeaderRun) -> None:
    codes = round_to_e2m1(header_run.inputs).astype(np.int64)
    shifted = [np.roll(codes, -place) << (4 * place) for place in range(8)]
    assert (header_run.codes[:, 2] == shifted[0] + shifted[1]).all()
    assert (header_run.codes[:, 3].view(np.uint32) == sum(shifted)).all()


def test_e4m3_codes_are_correctly_rounded_and_saturate(header_run: HeaderRun) -> None:
    finite = ~np.isnan(header_run.inputs)
    expected = round_to_e4m3(header_run.inputs).view(np.uint8)
    assert (header_run.codes[finite, 4] == expected[finite]).all()
    assert (header_run.codes[~finite, 4] & 0x7F == 0x7F).all()


def test_block_scales_are_a_sixth_of_amax_times_the_global_scale(header_run: HeaderRun) -> None:
    is_amax = header_run.inputs >= 0
    amax = header_run.inputs[is_amax].astype(np.float64)
    bounds = [round_to_e4m3(amax / 6 * 3 * (1 + error)) for error in (-3e-7, 3e-7)]
    low, high = (bound.view(np.uint8) for bound in bounds)
    found = header_run.codes[is_amax, 5]
    assert ((low <= found) & (found <= high)).all()


def test_every_code_decodes_to_its_value(header_run: HeaderRun) -> None:
    codes = np.arange(256, dtype=np.uint8)
    expected = np.array([*e4m3_magnitudes(), np.nan])
    np.testing.assert_array_equal(header_run.decoded[:, 0], np.concatenate([expected, -expected]))
    np.testing.assert_array_equal(header_run.decoded[:, 1], decode_e2m1(codes & np.uint8(15)))


def test_the_multiplier_is_the_global_scale_over_the_scale_or_zero(header_run: HeaderRun) -> None:
    magnitudes = np.array(e4m3_magnitudes()[1:])
    assert header_run.decoded[0, 2] == 0.0
    np.testing.assert_allclose(header_run.decoded[1:127, 2], 3.0 / magnitudes, rtol=1e-6)


def test_offsets_are_those_of_the_layout(header_run: HeaderRun) -> None:
    assert header_run.offsets.tolist() == sf_128x4_offsets(300, 7).ravel().tolist()
