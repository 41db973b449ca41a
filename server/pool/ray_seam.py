"""The little of Ray that kopt uses, with types: Ray's own say `Any` where it matters.

Ray is imported here, when a pool is asked for, and in no process that does anything else.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol, cast

from kopt.config.errors import SetupError

HOW_TO_GET_RAY = "pip install 'kopt-mcp[ray]'"
NAMESPACE = "kopt"
SIM_RESOURCE = "kopt_sim"
"""The resource of Ray of which a node has as many as simulators may run there."""


class RemoteMethod(Protocol):
    """A method of an actor."""

    def remote(self, *arguments: Any) -> Any:
        """Call it; the result is a reference, to get or to await."""
        ...


class SeatHandle(Protocol):
    """An actor of `seat.py`, elsewhere."""

    @property
    def ask(self) -> RemoteMethod:
        """Its only method."""
        ...


class SeatMaker(Protocol):
    """Makes actors of one class."""

    def options(self, **options: Any) -> "SeatMaker":
        """Return a maker with Ray's options for them."""
        ...

    def remote(self, *arguments: Any) -> SeatHandle:
        """Make one; it starts when a node has room."""
        ...


class RayModule(Protocol):
    """The module `ray`."""

    def init(self, **options: Any) -> Any:
        """Connect this process to a cluster, or start one."""
        ...

    def shutdown(self) -> None:
        """Disconnect; a cluster that this process started ends."""
        ...

    def remote(self, of: type, /) -> SeatMaker:
        """Return what makes actors of a class."""
        ...

    def get(self, of: Any, *, timeout: float | None = None) -> Any:
        """Return the value of a reference."""
        ...

    def put(self, value: Any) -> Any:
        """Return a reference to a value that is kept as long as the reference."""
        ...

    def wait(self, of: Sequence[Any], *, timeout: float) -> tuple[list[Any], list[Any]]:
        """Return which references have values, and which have none after `timeout` seconds."""
        ...

    def kill(self, actor: SeatHandle, *, no_restart: bool) -> None:
        """End an actor's process."""
        ...

    def nodes(self) -> list[dict[str, Any]]:
        """Return the nodes of the cluster."""
        ...


def ray_module() -> RayModule:
    """Return Ray.

    Raises:
        SetupError: It is not installed.
    """
    try:
        return cast("RayModule", import_module("ray"))
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise SetupError(f"a pool needs Ray, and this Python has none: {HOW_TO_GET_RAY}") from error


def lost_errors() -> tuple[type[Exception], ...]:
    """Return what Ray raises where an actor, its node or what it returned is gone."""
    errors = import_module("ray.exceptions")
    actor = ("RayActorError", "ActorUnschedulableError", "WorkerCrashedError")
    return tuple(getattr(errors, name) for name in (*actor, "NodeDiedError", "ObjectLostError"))


def at_node(node: str) -> Any:
    """Return the strategy that starts an actor on one node and nowhere else."""
    strategies = import_module("ray.util.scheduling_strategies")
    return strategies.NodeAffinitySchedulingStrategy(node, soft=False)


def pickled_by_value(module: Any) -> None:
    """Have the classes of a module sent to actors themselves, not by the name of the module."""
    import_module("ray.cloudpickle").register_pickle_by_value(module)


def pool_names() -> list[str]:
    """Return the names of the pools in the cluster."""
    util = import_module("ray.util")
    named: list[dict[str, str]] = util.list_named_actors(all_namespaces=True)
    return [one["name"] for one in named if one["namespace"] == NAMESPACE]


def pool_named(name: str) -> SeatHandle:
    """Return the actor of a pool."""
    return cast("SeatHandle", import_module("ray").get_actor(name, namespace=NAMESPACE))
