"""How far sampled runs are from the exact one: the deviation that honest roundings leave.

Root mean square of the distances from the exact result, not from the mean of the runs: what is off
to one side counts. Next to a kink of a function most runs show nothing; the largest distance of the
wide ones then says more than a mean that the others are part of. Next to the edge of its domain, as
of log at 0, where wide runs give no number, honest ones alone say something.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.wide_work import slices

from .rounding_noise import WIDEST, SampledRun, block_elements
from .torch_library import Tensor

AT_EDGE = 2.0
"""How many times as much honest runs count for elements next to the edge of a function's domain."""


class Spread:
    """The distances of one output, added up run by run."""

    def __init__(self, torch: Any, exact: Tensor) -> None:
        """Have no run yet; `exact` is float64, or a result that no rounding moves."""
        self._torch = torch
        self._exact = exact.to(torch.float64).reshape(-1)
        self._shape = exact.shape
        self._honest = torch.zeros_like(self._exact)
        self._wide = torch.zeros_like(self._exact)
        self._widest = torch.zeros_like(self._exact)
        self._is_at_edge = torch.zeros_like(self._exact, dtype=torch.bool)
        self._honest_runs = self._wide_runs = 0

    def add(self, got: Tensor, sampled: SampledRun) -> None:
        """Add one run: 0 where it is equal to the exact one, as infinities may be.

        It is 0, too, where roundings larger than honest ones leave the finite numbers. What is no
        floating-point number counts only where roundings are honest.
        """
        if sampled.is_wide and not got.is_floating_point():
            return
        self._wide_runs += sampled.is_wide
        self._honest_runs += not sampled.is_wide
        flat = got.to(self._torch.float64).reshape(-1)
        total = self._wide if sampled.is_wide else self._honest
        for block in slices(flat.numel(), block_elements(flat)):
            exact = self._exact[block]
            away = (flat[block] - exact).div_(sampled.scale)
            is_none = flat[block] == exact
            if sampled.is_wide:
                is_edge = ~away.isfinite() & ~is_none
                self._is_at_edge[block] |= is_edge
                is_none |= is_edge
            square = away.masked_fill_(is_none, 0.0).square_()
            total[block] += square
            if sampled.is_wide:
                self._torch.maximum(self._widest[block], square, out=self._widest[block])

    @property
    def exact(self) -> Tensor:
        """The exact result in float64."""
        return self._exact.reshape(self._shape)

    @property
    def deviation(self) -> Tensor:
        """The standard deviation of each element."""
        maximum = self._torch.maximum
        every = (self._honest + self._wide) / max(self._honest_runs + self._wide_runs, 1)
        found = maximum(every, self._widest / WIDEST**2)
        honest = self._honest * (AT_EDGE**2 / max(self._honest_runs, 1))
        found = maximum(found, honest.masked_fill_(~self._is_at_edge, 0.0))
        return found.sqrt_().reshape(self._shape)


def on_host(tensors: Mapping[str, Tensor]) -> dict[str, npt.NDArray[np.float64]]:
    """Return float64 tensors as arrays in this process's memory."""
    return {name: np.asarray(one.cpu().numpy(), np.float64) for name, one in tensors.items()}
