"""The actors of a pool's evaluators: on which nodes there are to be some, started and ended.

One actor a GPU, by Ray's own resource, on a named node and nowhere else: of what a node has, as
much is hired, and what is lost with a node is not waited for elsewhere.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import count
from typing import Any

from kopt.config.pool_address import PoolKind
from kopt.tools.remote.code_bundle import code_bundle

from . import seat
from .evaluator_queue import EvaluatorSlot
from .ray_seam import (
    SIM_RESOURCE,
    RayModule,
    SeatHandle,
    at_node,
    lost_errors,
    pickled_by_value,
    ray_module,
)

_RESOURCES: dict[PoolKind, str] = {"cuda": "GPU", "sim": SIM_RESOURCE}


class Hiring:
    """Starts and ends actors; knows the nodes as they were when `changes` last looked."""

    def __init__(
        self,
        ray: RayModule,
        pool: str,
        parcels: Mapping[PoolKind, Mapping[str, Any]],
        lost: tuple[type[Exception], ...],
    ) -> None:
        """Start nothing yet.

        Args:
            ray: Ray, connected.
            pool: Name of the pool.
            parcels: What a `seat.Seat` is given, by kind.
            lost: What Ray raises where an actor is gone.
        """
        self.pool = pool
        self.lost = lost
        self._ray = ray
        self._parcels = parcels
        self._archive: Any = None
        self._actors: dict[str, SeatHandle] = {}
        self._numbers = count(1)
        self._nodes: list[dict[str, Any]] | None = None

    def changes(
        self, slots: Iterable[EvaluatorSlot], kinds: Collection[PoolKind]
    ) -> tuple[list[EvaluatorSlot], list[EvaluatorSlot]]:
        """Return the evaluators that are gone or no longer wanted, and those hired now."""
        self._nodes = [node for node in self._ray.nodes() if node["Alive"]]
        living = {node["NodeID"]: node for node in self._nodes}
        slots = list(slots)
        gone = [one for one in slots if one.node not in living or one.kind not in kinds]
        new: list[EvaluatorSlot] = []
        for name, node in living.items():
            for kind in kinds:
                has = sum(one.node == name and one.kind == kind for one in slots)
                new += [self._hired(node, kind) for _ in range(has, _offered(node, kind))]
        return gone, new

    def actors(self, slot_id: str) -> list[SeatHandle]:
        """Return the actor of an evaluator; none if it was dismissed."""
        actor = self._actors.get(slot_id)
        return [] if actor is None else [actor]

    def dismiss(self, slot_id: str) -> None:
        """End an actor for good."""
        self._ray.kill(self._actors.pop(slot_id), no_restart=True)

    def restart(self, slot_id: str) -> None:
        """End what an actor does, whatever it is; Ray starts it again."""
        self._ray.kill(self._actors[slot_id], no_restart=False)

    def why_none(self, kind: PoolKind) -> str:
        """Return why no node has evaluators of a kind; "" if one has, or nobody has looked yet."""
        if self._nodes is None or any(_offered(node, kind) for node in self._nodes):
            return ""
        names = ", ".join(sorted(node["NodeManagerHostname"] for node in self._nodes))
        if kind == "cuda":
            return (
                f"no node of the cluster ({names}) has a GPU for Ray: add one, or evaluate on"
                " simulators with .../sim"
            )
        return (
            f"no node of the cluster ({names}) offers simulators: start it with"
            f" ray start --resources '{{\"{SIM_RESOURCE}\": 4}}' for four of them"
        )

    def waiting_words(self, kind: PoolKind) -> str:
        """Return what a caller waits for where evaluators are to come."""
        offered = sum(_offered(node, kind) for node in self._nodes or ())
        what = "GPUs" if kind == "cuda" else "simulators"
        return (
            f"waiting for an evaluator: the cluster has {offered} {what}, which are starting or"
            " taken by other work of Ray"
        )

    def is_expecting(self, slots: Iterable[EvaluatorSlot], kind: PoolKind) -> bool:
        """Return whether an evaluator of a kind may come that is not there yet."""
        away = ("starting", "restarting")
        return self._nodes is None or any(one.kind == kind and one.state in away for one in slots)

    def _hired(self, node: Mapping[str, Any], kind: PoolKind) -> EvaluatorSlot:
        slot_id = f"{kind}-{next(self._numbers)}"
        offered = _offered(node, kind)
        jobs = max(1, int(node["Resources"].get("CPU", 1)) // offered)
        parcel = dict(self._parcels[kind])
        parcel["arguments"] = {"kind": kind, "jobs": jobs}
        if self._archive is None:
            self._archive = self._ray.put(code_bundle().archive())
        share = {"num_gpus": 1} if kind == "cuda" else {"resources": {SIM_RESOURCE: 1}}
        maker = self._ray.remote(seat.Seat).options(
            **share,
            num_cpus=0,  # GPU nodes may be started without CPUs for others
            scheduling_strategy=at_node(node["NodeID"]),
            max_restarts=-1,  # one that dies with its candidate serves the next
            max_task_retries=0,  # what is done again is the caller's to say: it counts the deaths
            enable_task_events=False,  # Ray's head would keep some of each of a million calls
        )
        self._actors[slot_id] = maker.remote(parcel, self._archive)
        return EvaluatorSlot(slot_id, kind, node["NodeID"], node["NodeManagerHostname"])


def hiring_of(pool: str, entry: str, modules: Mapping[str, Mapping[str, str]]) -> Hiring:
    """Return what hires for a pool, within its coordinator's process.

    Args:
        pool: Its name.
        entry: What evaluators enter, `module:Class`.
        modules: The Python modules that they need, by kind, with their distributions.
    """
    pickled_by_value(seat)
    parcels: dict[PoolKind, dict[str, Any]] = {
        kind: {
            "digest": code_bundle().digest,
            "modules": dict(modules[kind]),
            "entry": entry,
        }
        for kind in _RESOURCES
    }
    return Hiring(ray_module(), pool, parcels, lost_errors())


def _offered(node: Mapping[str, Any], kind: PoolKind) -> int:
    return int(node["Resources"].get(_RESOURCES[kind], 0))
