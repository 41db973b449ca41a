"""A timing session that was lost with the connection to its GPU, begun again as a whole.

Times of two sessions are not mixed: other memory, perhaps another clock. So what measures over one
session is a function that can be called again, and loses only that session.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from kopt.config.errors import InfraError

MOST_LOSSES = 4
"""Sessions that one measurement may lose."""
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class TimingLost(InfraError):
    """The session is gone with its connection; a new one may be opened."""


def begun_again(measure: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Return `measure`, called again where its session is lost, `MOST_LOSSES` times at most.

    Raises:
        TimingLost: It was lost each time.
    """

    @wraps(measure)
    def measured(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        for _ in range(MOST_LOSSES - 1):
            try:
                return measure(*args, **kwargs)
            except TimingLost:
                continue
        return measure(*args, **kwargs)

    return measured
