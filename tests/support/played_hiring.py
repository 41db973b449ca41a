"""The actors of a pool as its coordinator sees them, without Ray: they die and come as told."""

from collections.abc import Awaitable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from kopt.config.pool_address import PoolKind
from kopt.server.pool.evaluator_queue import EvaluatorSlot
from kopt.server.pool.seat import UNFIT


class Gone(Exception):
    """Stands for what Ray raises of an actor that has gone."""


@dataclass
class PlayedActor:
    """An actor with a GPU."""

    model: str
    gpu: str
    incarnation: int = 0
    is_dead: bool = False
    unfit: str = ""

    @property
    def ask(self) -> "PlayedActor":
        """Its method."""
        return self

    def remote(self, method: str) -> Awaitable[dict[str, Any]]:
        """Answer `ready`."""
        assert method == "ready"
        return self._ready()

    async def _ready(self) -> dict[str, Any]:
        if self.is_dead:
            raise Gone
        if self.unfit:
            return {UNFIT: self.unfit}
        return {
            "opened": f"opened {self.gpu}",
            "model": self.model,
            "gpu": self.gpu,
            "host": "box",
            "incarnation": f"{self.gpu}/{self.incarnation}",
        }


@dataclass
class PlayedHiring:
    """Implements `Hiring` over a cluster of played actors."""

    cluster: dict[str, PlayedActor]
    pool: str = "pool-test"
    lost: tuple[type[Exception], ...] = (Gone,)
    has_looked: bool = False
    hired: dict[str, PlayedActor] = field(default_factory=dict[str, PlayedActor])
    restarted: list[str] = field(default_factory=list[str])

    def changes(
        self, slots: Iterable[EvaluatorSlot], kinds: Collection[PoolKind]
    ) -> tuple[list[EvaluatorSlot], list[EvaluatorSlot]]:
        """Hire all that the cluster has, and dismiss what it has no more."""
        self.has_looked = True
        known = {one.id: one for one in slots}
        gone = [one for name, one in known.items() if name not in self.cluster or not kinds]
        new = [name for name in self.cluster if name not in known and kinds]
        self.hired |= {name: self.cluster[name] for name in new}
        return gone, [EvaluatorSlot(name, "cuda", "node", "box") for name in new]

    def actors(self, slot_id: str) -> list[PlayedActor]:
        """Return the actor."""
        return [self.hired[slot_id]] if slot_id in self.hired else []

    def dismiss(self, slot_id: str) -> None:
        """Forget it."""
        del self.hired[slot_id]

    def restart(self, slot_id: str) -> None:
        """Note it; the test makes it another incarnation."""
        self.restarted.append(slot_id)

    def why_none(self, kind: PoolKind) -> str:
        """Say so once the cluster has nothing."""
        return f"nothing for {kind}" if self.has_looked and not self.cluster else ""

    def waiting_words(self, kind: PoolKind) -> str:
        """Say what is waited for."""
        return f"waiting for {kind}"

    def is_expecting(self, slots: Iterable[EvaluatorSlot], kind: PoolKind) -> bool:
        """Return whether something may still come."""
        return not self.has_looked or any(one.state != "free" for one in slots)
