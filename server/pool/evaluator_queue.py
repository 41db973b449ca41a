"""Who gets which evaluator: first come, first served within a caller, and callers in turn.

An evaluator that becomes free goes to the caller that holds the fewest, then to the one that was
served longest ago. It knows neither Ray nor time: `coordinator.py` tells it what happens.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

from kopt.config.pool_address import PoolKind

SlotState = Literal["starting", "free", "busy", "restarting", "unfit"]


@dataclass
class EvaluatorSlot:
    """One evaluator."""

    id: str
    kind: PoolKind
    node: str
    """Id of its node in Ray."""
    host: str
    state: SlotState = "starting"
    model: str = ""
    gpu: str = ""
    """UUID of its GPU; of a simulator its own id."""
    incarnation: str = ""
    """Another one after each restart."""
    detail: str = ""
    """Why it is unfit."""
    lease: int = 0
    """0: nobody holds it."""
    caller: str = ""
    errands: int = 0
    """How many pieces of work keep to it."""
    calls: int = 0


@dataclass(frozen=True)
class EvaluatorWish:
    """What a caller waits for."""

    caller: str
    kind: PoolKind
    model: str = ""
    """"": any."""
    gpu: str = ""
    """The only GPU that will do; "": any."""
    errand: str = ""
    """Work that keeps to the GPU that it began with; "": none."""


Grant = Callable[[EvaluatorSlot | None], None]
"""Told the evaluator, whose lease is new; None: the GPU is gone, or the caller."""


@dataclass
class CallerStanding:
    """What is known of one caller."""

    holds: int = 0
    served: int = 0
    """Number of the last grant; 0: none yet."""
    calls: int = 0
    evaluations: int = 0


@dataclass
class _Line:
    """The wishes of one caller, oldest first."""

    anywhere: dict[tuple[PoolKind, str], deque[tuple[int, EvaluatorWish, Grant]]] = field(
        default_factory=lambda: defaultdict(deque)
    )
    at: dict[str, deque[tuple[int, EvaluatorWish, Grant]]] = field(
        default_factory=lambda: defaultdict(deque)
    )

    def fitting(self, slot: EvaluatorSlot) -> deque[tuple[int, EvaluatorWish, Grant]] | None:
        """Return the queue whose first wish is the oldest that `slot` can serve."""
        queues = (
            self.at.get(slot.gpu),
            self.anywhere.get((slot.kind, slot.model)),
            self.anywhere.get((slot.kind, "")),
        )
        return min((one for one in queues if one), key=lambda one: one[0][0], default=None)

    def queues(self) -> Iterator[deque[tuple[int, EvaluatorWish, Grant]]]:
        yield from self.anywhere.values()
        yield from self.at.values()


class EvaluatorQueue:
    """The evaluators of a pool and the wishes for them; for one thread."""

    def __init__(self, first_lease: int = 1) -> None:
        """Begin without any; leases are numbered upwards from `first_lease`."""
        self.slots: dict[str, EvaluatorSlot] = {}
        self.callers: dict[str, CallerStanding] = {}
        self._lines: dict[str, _Line] = {}
        self._leases: dict[int, EvaluatorSlot] = {}
        self._by_gpu: dict[str, EvaluatorSlot] = {}
        self._homes: dict[tuple[str, str], str] = {}
        self._numbers, self._next_lease = count(1), count(first_lease)

    def join(self, caller: str) -> None:
        """Know a caller from now on."""
        self.callers.setdefault(caller, CallerStanding())
        self._lines.setdefault(caller, _Line())

    def leave(self, caller: str) -> tuple[EvaluatorSlot, ...]:
        """Forget a caller; return the evaluators that it held, which are nobody's now."""
        self.callers.pop(caller, None)
        line = self._lines.pop(caller, _Line())
        for key in [one for one in self._homes if one[0] == caller]:
            self._leave_home(key)
        for queue in line.queues():
            for _, _, grant in queue:
                grant(None)
        held = tuple(slot for slot in self._leases.values() if slot.caller == caller)
        for slot in held:
            self._take_back(slot, "restarting")
        return held

    def add(self, slot: EvaluatorSlot) -> None:
        """Take in an evaluator; it serves nobody before it is `ready`."""
        self.slots[slot.id] = slot

    def remove(self, slot_id: str) -> None:
        """Forget an evaluator that will not come back, and all that waits for its GPU alone."""
        slot = self.slots.pop(slot_id)
        self._take_back(slot, "unfit")
        self._forget_gpu(slot)

    def ready(self, slot_id: str, model: str, gpu: str, incarnation: str) -> None:
        """Let an evaluator serve: it has looked what it is."""
        slot = self.slots[slot_id]
        if slot.gpu != gpu:
            self._forget_gpu(slot)
        slot.model, slot.gpu, slot.incarnation = model, gpu, incarnation
        self._by_gpu[gpu] = slot
        self._free(slot)

    def set_aside(self, slot_id: str, state: SlotState, detail: str = "") -> None:
        """Let an evaluator serve nobody until it is `ready` again, which an unfit one never is."""
        slot = self.slots[slot_id]
        self._take_back(slot, state)
        slot.detail = detail
        if state == "unfit":
            self._forget_gpu(slot)

    def knows(self, gpu: str) -> bool:
        """Return whether an evaluator has this GPU, at work or not."""
        return gpu in self._by_gpu

    def of_kind(self, kind: PoolKind, model: str = "") -> list[EvaluatorSlot]:
        """Return the evaluators of a kind and a model that serve, or will."""
        return [
            slot
            for slot in self.slots.values()
            if slot.kind == kind and slot.state != "unfit" and model in ("", slot.model)
        ]

    def ask(self, wish: EvaluatorWish, grant: Grant) -> None:
        """Have `grant` told of an evaluator once it is this wish's turn, perhaps at once."""
        home = wish.gpu or self._homes.get((wish.caller, wish.errand), "")
        found = self._by_gpu.get(home) if home else self._free_one(wish)
        if found is not None and found.state == "free":
            self._lease(found, wish, grant)
            return
        line = self._lines[wish.caller]
        queue = line.at[home] if home else line.anywhere[(wish.kind, wish.model)]
        queue.append((next(self._numbers), wish, grant))

    def withdraw(self, caller: str, grant: Grant) -> None:
        """Forget a wish that waits, by what would be told; one that is granted stays so."""
        for queue in self._lines[caller].queues() if caller in self._lines else ():
            for one in [one for one in queue if one[2] is grant]:
                queue.remove(one)

    def holder(self, lease: int) -> EvaluatorSlot | None:
        """Return the evaluator of a lease; None once it is over."""
        return self._leases.get(lease)

    def release(self, lease: int) -> bool:
        """Take an evaluator back after a call; False where the lease was over."""
        slot = self._leases.get(lease)
        if slot is None:
            return False
        slot.calls += 1
        if (standing := self.callers.get(slot.caller)) is not None:
            standing.calls += 1
        self._free(slot)
        return True

    def end_errand(self, caller: str, errand: str) -> bool:
        """Forget which GPU a piece of work keeps to; False where it had none."""
        if (caller, errand) not in self._homes:
            return False
        self._leave_home((caller, errand))
        if (standing := self.callers.get(caller)) is not None:
            standing.evaluations += 1
        return True

    def waiting(self, caller: str) -> int:
        """Return how many wishes of a caller wait."""
        line = self._lines.get(caller)
        return 0 if line is None else sum(map(len, line.queues()))

    def _forget_gpu(self, slot: EvaluatorSlot) -> None:
        """Tell what waits for the GPU of `slot` alone that it is gone; the rest goes elsewhere."""
        if self._by_gpu.get(slot.gpu) is not slot:
            return
        del self._by_gpu[slot.gpu]
        slot.errands = 0
        self._homes = {key: gpu for key, gpu in self._homes.items() if gpu != slot.gpu}
        for line in self._lines.values():
            for _, wish, grant in line.at.pop(slot.gpu, ()):
                if wish.gpu:
                    grant(None)
                else:
                    self.ask(wish, grant)

    def _free_one(self, wish: EvaluatorWish) -> EvaluatorSlot | None:
        """Return the free evaluator to which the least work keeps."""
        fit = (one for one in self.of_kind(wish.kind, wish.model) if one.state == "free")
        return min(fit, key=lambda one: (one.errands, one.calls), default=None)

    def _free(self, slot: EvaluatorSlot) -> None:
        self._take_back(slot, "free")
        slot.detail = ""
        turns = (
            (standing.holds, standing.served, caller)
            for caller, standing in self.callers.items()
            if self._lines[caller].fitting(slot) is not None
        )
        first = min(turns, default=None)
        if first is None:
            return
        queue = self._lines[first[2]].fitting(slot)
        assert queue is not None  # as just found
        _, wish, grant = queue.popleft()
        self._lease(slot, wish, grant)

    def _lease(self, slot: EvaluatorSlot, wish: EvaluatorWish, grant: Grant) -> None:
        slot.lease, slot.caller, slot.state = next(self._next_lease), wish.caller, "busy"
        self._leases[slot.lease] = slot
        standing = self.callers[wish.caller]
        standing.holds += 1
        standing.served = next(self._numbers)
        key = (wish.caller, wish.errand)
        if wish.errand and key not in self._homes:
            self._homes[key] = slot.gpu
            slot.errands += 1
        grant(slot)

    def _take_back(self, slot: EvaluatorSlot, state: SlotState) -> None:
        if slot.lease:
            del self._leases[slot.lease]
            if (standing := self.callers.get(slot.caller)) is not None:
                standing.holds -= 1
        slot.lease, slot.caller, slot.state = 0, "", state

    def _leave_home(self, key: tuple[str, str]) -> None:
        slot = self._by_gpu.get(self._homes.pop(key))
        if slot is not None:
            slot.errands -= 1
