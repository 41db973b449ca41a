"""Oracle of cross_entropy: one number of all rows, so that no axis has independent rows."""

from collections.abc import Mapping

import numpy as np

from kopt.kernels.input_regimes import Magnitudes, draw_amplitudes, draw_values
from kopt.kernels.oracle import Arrays, Expected, Inputs
from kopt.kernels.problem import Workload

REGIMES = ("normal", "outliers", "zero_blocks", "mixed")
_LEFT = 2.0**-18  # of the terms' magnitudes, by a sum in any order


def make_inputs(workload: Workload, rng: np.random.Generator, regime: str) -> Inputs:
    """Return logits and the labels of their rows."""
    shape = (workload.axes["N"], workload.axes["C"])
    amplitudes = draw_amplitudes(rng, shape, regime, Magnitudes(tiny=1.0, huge=1.0))
    labels = rng.integers(0, shape[1], shape[0])
    return {"logits": draw_values(rng, shape, amplitudes), "labels": labels}


def expected(
    inputs: Arrays, scalars: Mapping[str, float | int], workload: Workload
) -> dict[str, Expected]:
    """Return the weighted mean over the rows."""
    logits = inputs["logits"].astype(np.float64)
    top = logits.max(axis=1)
    log_sum = np.log(np.exp(logits - top[:, None]).sum(axis=1)) + top
    picked = logits[np.arange(workload.axes["N"]), inputs["labels"]]
    exact = np.asarray((log_sum - picked).mean() * scalars["weight"])
    magnitude = (np.abs(log_sum) + np.abs(picked)).mean() * abs(scalars["weight"])
    written = np.ones((), dtype=np.bool_)
    slack = np.asarray(magnitude * _LEFT)
    return {"loss": Expected(exact, exact.astype(np.float32), written, slack=slack)}
