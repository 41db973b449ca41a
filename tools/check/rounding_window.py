"""Which exact values an honest kernel may round to each code of e2m1 or e4m3."""

import numpy as np
import numpy.typing as npt

from .number_formats import magnitudes
from .tolerances import CODE_WINDOW


def rounding_window(
    number_format: str,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the smallest and largest magnitude accepted for each code ordinal, 0 first.

    Between the midpoints to its neighbours a code is right; roundings on the way move a value over
    a midpoint by at most `CODE_WINDOW` of it. The largest code stands for everything above.
    """
    values = magnitudes(number_format)
    middle = (values[1:] + values[:-1]) / 2
    lower = np.concatenate([[0.0], middle * (1 - CODE_WINDOW)])
    upper = np.concatenate([middle * (1 + CODE_WINDOW), [np.inf]])
    return lower, upper
