"""What the pools of a cluster say of themselves; nothing is started."""

from collections.abc import Callable

from kopt.config.errors import InfraError
from kopt.config.pool_address import PoolAddress
from kopt.config.settings import Settings
from kopt.tools.remote.answers import PoolStatusAnswer
from kopt.tools.remote.calls import PoolStatusCall

from .pool_route import PoolRoute, PoolWish


def pool_statuses(
    address: PoolAddress, settings: Settings, show: Callable[[str], None]
) -> PoolStatusAnswer:
    """Return the status of every pool in a cluster.

    Raises:
        SetupError: There is no Ray, or no such cluster.
        InfraError: It answers with something else, or ends.
    """
    link = PoolRoute(address, settings, show, PoolWish(starts=False)).connect()
    try:
        with link.lane() as lane:
            answer, _ = link.ask(lane, PoolStatusCall())
    finally:
        link.close()
    if not isinstance(answer, PoolStatusAnswer):
        raise InfraError(f"the pool answered {answer.kind} when asked for its status")
    return answer
