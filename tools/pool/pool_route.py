"""The way to a pool: a process that joins its cluster, then a connection to it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass

from kopt.config.callbacks import ignore
from kopt.config.errors import SetupError
from kopt.config.pool_address import PoolAddress
from kopt.config.ray_environment import pool_environment
from kopt.config.settings import Settings, all_variables
from kopt.tools.remote.link import Link
from kopt.tools.remote.reconnecting import lacking

from .relay_pipe import RelayPipe


@dataclass(frozen=True)
class PoolWish:
    """What is asked of a pool besides its name, as `server/pool/relay.py` takes it."""

    prefers: str = ""
    """UUID of the GPU to begin with if it is there; "": any."""
    fresh: bool = False
    """Whether that GPU is to be this caller's alone, with new worker processes."""
    starts: bool = True
    """Whether `ray` may start a cluster on this machine."""


_ANY = PoolWish()


class PoolRoute:
    """Implements `remote.reconnecting.DeviceRoute`."""

    def __init__(
        self,
        address: PoolAddress,
        settings: Settings,
        show: Callable[[str], None] = ignore,
        wish: PoolWish = _ANY,
    ) -> None:
        """Connect to nothing yet.

        Args:
            address: The pool.
            settings: Of this process.
            show: Told of connecting.
            wish: What is asked of it besides.
        """
        self._address = address
        self._settings = settings
        self._show = show
        self._wish = wish

    @property
    def name(self) -> str:
        """The whole address."""
        return str(self._address)

    @property
    def device(self) -> str:
        """What is evaluated on there."""
        return self._address.kind

    @property
    def machine(self) -> str:
        """The cluster, in words."""
        cluster = self._address.cluster
        return "Ray on this machine" if cluster is None else f"the Ray cluster {cluster}"

    def connect(self) -> Link:
        """Return a new connection to a process that has joined the cluster.

        Raises:
            SetupError: It cannot be had; the message says why and what to do.
        """
        self._show(f"joining {self.machine}")
        pipe = RelayPipe(
            {"address": self.name, **asdict(self._wish)},
            pool_environment(self._settings, all_variables()),
        )
        try:
            pipe.ready()
            return Link(pipe, self._show, remembered_bytes=0)
        except SetupError as error:
            pipe.hang_up()
            raise lacking(self, error) from error
        except BaseException:
            pipe.hang_up()
            raise
