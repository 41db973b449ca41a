"""How far sampled runs are from the exact one: the deviation that honest roundings leave.

Root mean square of the distances from the exact result, not from the mean of the runs: what is off
to one side counts. Next to a kink of a function most runs show nothing; the largest distance of the
wide ones then says more than a mean that the others are part of.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.wide_work import slices

from .rounding_noise import WIDEST, SampledRun, block_elements
from .torch_library import Tensor


class Spread:
    """The distances of one output, added up run by run."""

    def __init__(self, torch: Any, exact: Tensor) -> None:
        """Have no run yet; `exact` is float64, or a result that no rounding moves."""
        self._torch = torch
        self._exact = exact.to(torch.float64).reshape(-1)
        self._shape = exact.shape
        self._squares = torch.zeros_like(self._exact)
        self._widest = torch.zeros_like(self._exact)
        self._count = 0

    def add(self, got: Tensor, sampled: SampledRun) -> None:
        """Add one run: 0 where it is equal to the exact one, as infinities may be.

        It is 0, too, where roundings larger than honest ones left the finite numbers. What is no
        floating-point number counts only where roundings are honest.
        """
        self._count += 1
        if sampled.is_wide and not got.is_floating_point():
            return
        flat = got.to(self._torch.float64).reshape(-1)
        for block in slices(flat.numel(), block_elements(flat)):
            exact = self._exact[block]
            away = (flat[block] - exact).div_(sampled.scale)
            is_none = flat[block] == exact
            if sampled.is_wide:
                is_none |= ~away.isfinite()
            square = away.masked_fill_(is_none, 0.0).square_()
            self._squares[block] += square
            if sampled.is_wide:
                self._torch.maximum(self._widest[block], square, out=self._widest[block])

    @property
    def exact(self) -> Tensor:
        """The exact result in float64."""
        return self._exact.reshape(self._shape)

    @property
    def deviation(self) -> Tensor:
        """The standard deviation of each element."""
        mean = self._squares / max(self._count, 1)
        widest = self._widest / WIDEST**2
        return self._torch.maximum(mean, widest).sqrt_().reshape(self._shape)


def on_host(tensors: Mapping[str, Tensor]) -> dict[str, npt.NDArray[np.float64]]:
    """Return float64 tensors as arrays in this process's memory."""
    return {name: np.asarray(one.cpu().numpy(), np.float64) for name, one in tensors.items()}
