"""A complete tiny problem, out[b][h] = x[b][h] * scale, with an oracle and a kernel."""

from pathlib import Path

from kopt.kernels.candidate import Candidate
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problem

PROBLEM_YAML = """\
name: scale_rows
op_type: scale
description: out = x * scale, a row at a time.
axes: {B: {var: true}, H: {var: true}, HB: {expr: "H // 16"}}
tensors:
  x: {role: in, dtype: float32, shape: [B, H]}
  weight: {role: in, dtype: bfloat16, shape: [H], static: true}
  out: {role: out, dtype: float32, shape: [B, H]}
scalars: {scale: {dtype: float32, value: 2.0}}
row_axis: B
workloads:
  b8xh64: {axes: {B: 8, H: 64}}
  b32xh256: {axes: {B: 32, H: 256}}
tolerance: fp32
flops: B * H
"""

ORACLE = '''\
"""Oracle of scale_rows."""

import ml_dtypes
import numpy as np

from kopt.kernels.oracle import Expected


def make_inputs(workload, rng, regime):
    rows, columns = workload.axes["B"], workload.axes["H"]
    return {
        "x": rng.standard_normal((rows, columns)).astype(np.float32),
        "weight": rng.standard_normal(columns).astype(ml_dtypes.bfloat16),
    }


def expected(inputs, scalars):
    exact = inputs["x"].astype(np.float64) * scalars["scale"]
    written = np.ones(exact.shape, dtype=bool)
    return {"out": Expected(exact=exact, rounded=exact.astype(np.float32), written=written)}
'''

BODY = """\
extern "C" __global__ void scale_rows(const float* x, float* out, int H, float scale) {
  for (int h = threadIdx.x; h < H; h += blockDim.x) {
    out[blockIdx.x * H + h] = x[blockIdx.x * H + h] * scale;
  }
}
"""

HEADER = """\
/* kopt: 1
family: other
tune: {BLOCK: [128, 256]}
launch:
  - kernel: scale_rows
    grid: B
    block: BLOCK
    args: [x, out, H, scale]
*/
"""


def write_tiny_problem(root: Path) -> Path:
    """Write the problem folder scale_rows below `root` and return it."""
    folder = root / "scale_rows"
    folder.mkdir()
    (folder / "problem.yaml").write_text(PROBLEM_YAML)
    (folder / "oracle.py").write_text(ORACLE)
    (folder / "reference.cu").write_text(HEADER + BODY)
    return folder


def tiny_problem(root: Path) -> Problem:
    """Return the problem scale_rows, written below `root`."""
    return load_problem(write_tiny_problem(root))


def tiny_candidate(header: str = HEADER) -> Candidate:
    """Return a candidate of scale_rows with another header comment."""
    return Candidate(header + BODY)
