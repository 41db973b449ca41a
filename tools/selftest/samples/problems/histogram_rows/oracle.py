"""Oracle of histogram_rows: integers, which are right or wrong."""

from collections.abc import Mapping

import numpy as np

from kopt.kernels.oracle import Arrays, Expected, Inputs
from kopt.kernels.problem import Workload

DERIVED_REGIMES = ()


def make_inputs(workload: Workload, rng: np.random.Generator, regime: str) -> Inputs:
    """Return values of 64 kinds; rows of one kind alone where a regime has zeros."""
    shape = (workload.axes["R"], workload.axes["C"])
    values = rng.integers(0, 64, shape, dtype=np.int32)
    if regime in ("zero_blocks", "outliers"):
        values[::2] = rng.integers(0, 64, (len(values[::2]), 1), dtype=np.int32)
    return {"x": values}


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return the counts."""
    del scalars
    counts = np.stack([np.bincount(row, minlength=64) for row in inputs["x"]])
    every = np.ones(counts.shape, dtype=np.bool_)
    return {"counts": Expected(counts.astype(np.float64), counts.astype(np.int32), every)}
