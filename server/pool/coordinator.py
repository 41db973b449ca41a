"""The one actor of a pool that hands out its evaluators, starts them, and knows when they died.

It is named and detached, so that all callers of the cluster find the same one, and Ray starts it
again should it die. Evaluators are its own: they go with it, and a new one starts new ones. Nothing
that counts is kept here: results are with the callers.
"""

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from kopt.config.pool_address import PoolKind
from kopt.kernels.pool_status import PoolCaller, PoolEvaluator, PoolStatus

from .evaluator_queue import EvaluatorQueue, EvaluatorSlot, EvaluatorWish
from .hiring import Hiring, hiring_of
from .seat import UNFIT

BEAT_S = 5.0
"""How often a caller says that it lives."""
SILENCE_S = 20.0
"""After this long without a word a caller is gone, and what it held is free."""
IDLE_S = 60.0
"""After this long without a caller evaluators of a kind end, and their GPUs are Ray's again."""
WATCH_S = 1.0
_PING_S = 0.25
_REVIVAL_S = 120.0
"""Longest wait for an actor that Ray starts again, and for a wish to be asked again."""
_ANSWER_S = 5.0
"""After this long without an evaluator a caller is told what it waits for, and asks again."""
_MINUTE_S = 60.0


class Coordinator:
    """Hands out the evaluators of one pool; all of it in one event loop."""

    def __init__(self, hiring: Hiring) -> None:
        """Begin without callers and without evaluators."""
        self._hiring = hiring
        self._queue = EvaluatorQueue(time.time_ns())
        self._heard: dict[str, float] = {}
        self._wanted: dict[PoolKind, float] = {}
        """When a caller of a kind was heard last."""
        self._opened: dict[str, str] = {}
        self._asked: dict[tuple[str, str], asyncio.Task[dict[str, Any]]] = {}
        self._began = time.monotonic()
        self._ended_calls: deque[float] = deque()
        self._ended_evaluations: deque[float] = deque()
        self._watch: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def hello(self, caller: str, kind: PoolKind, model: str, gpu: str) -> dict[str, Any]:
        """Return what a caller gets to work with: `opened`, or `wait` or `error` in words.

        Args:
            caller: Its name, another for each process.
            kind: What it evaluates on.
            model: The only GPU that will do; "": that of whichever is ready first.
            gpu: The UUID that it would like best; "": any.
        """
        self.beat(caller, kind, model)
        late = time.monotonic() + _ANSWER_S
        while True:
            ready = [one for one in self._queue.of_kind(kind, model) if one.gpu]
            if ready:
                best = min(ready, key=lambda one: (one.gpu != gpu, one.errands))
                return {"opened": self._opened[best.id]}
            refused = self._why_none(kind, model)
            if refused:
                return {"error": refused}
            if time.monotonic() > late:
                return {"wait": self._hiring.waiting_words(kind)}
            await asyncio.sleep(_PING_S)

    def beat(self, caller: str, kind: PoolKind, model: str) -> int:
        """Know that a caller lives; return how many evaluators of its model there are."""
        self._hear(caller, kind)
        return len(self._queue.of_kind(kind, model))

    async def acquire(self, wish: Mapping[str, Any], ticket: str = "") -> dict[str, Any]:
        """Return a lease of an evaluator when it is the caller's turn, or `gone`, or `error`.

        Args:
            wish: The fields of a `EvaluatorWish`.
            ticket: Another for each wish: one that is asked again, because its answer was lost on
                the way, is granted once. "": it is never asked again.
        """
        if not ticket:
            return await self._acquired(wish)
        key = (wish["caller"], ticket)
        if key not in self._asked:
            asked = self._asked[key] = asyncio.create_task(self._acquired(wish))
            forget = partial(self._asked.pop, key, None)
            later = asyncio.get_running_loop().call_later
            asked.add_done_callback(lambda _: later(_REVIVAL_S, forget))
        return await asyncio.shield(self._asked[key])

    async def _acquired(self, wish: Mapping[str, Any]) -> dict[str, Any]:
        wanted = EvaluatorWish(**wish)
        late = time.monotonic() + _REVIVAL_S  # one may be starting for ever: others have its GPU
        while wanted.gpu and not self._queue.knows(wanted.gpu):
            expects = self._hiring.is_expecting(self._queue.slots.values(), wanted.kind)
            if not expects or time.monotonic() > late:
                return {"gone": wanted.gpu}
            await asyncio.sleep(_PING_S)
        granted: asyncio.Future[EvaluatorSlot | None] = asyncio.get_running_loop().create_future()
        self._hear(wanted.caller, wanted.kind)
        grant = partial(_grant, granted)
        self._queue.ask(wanted, grant)
        while not (await asyncio.wait({granted}, timeout=_ANSWER_S))[0]:
            if refused := self._all_unfit(wanted.kind):
                self._queue.withdraw(wanted.caller, grant)
                return {"error": refused}
        slot = granted.result()
        if slot is None:
            return {"gone": "" if self._queue.knows(wanted.gpu) else wanted.gpu}
        return {
            "lease": slot.lease,
            "slot": slot.id,
            "node": slot.node,
            "gpu": slot.gpu,
            "incarnation": slot.incarnation,
            "opened": self._opened[slot.id],
        }

    def handle(self, slot_id: str) -> Any:
        """Return the actor of an evaluator, in a list; an empty one if it is gone."""
        return self._hiring.actors(slot_id)

    def release(self, lease: int) -> bool:
        """Take an evaluator back after a call."""
        self._ended_calls.append(time.monotonic())
        return self._queue.release(lease)

    async def lost(self, lease: int) -> str:
        """Return what became of an evaluator that a call failed on: `actor` or `node`.

        `actor`: its process died, and the node lives. `node`: that is gone, or unknown.
        """
        slot = self._queue.holder(lease)
        if slot is None:
            return "node"
        before = slot.incarnation
        self._queue.set_aside(slot.id, "restarting")
        await self._revive(slot)
        is_back = slot.state in ("free", "busy")
        return "actor" if is_back and slot.incarnation != before else "node"

    def end_errand(self, caller: str, errand: str) -> None:
        """Count an evaluation that has ended."""
        if self._queue.end_errand(caller, errand):
            self._ended_evaluations.append(time.monotonic())

    def goodbye(self, caller: str) -> None:
        """Take all back that a caller holds; what it left running there ends."""
        self._heard.pop(caller, None)
        for slot in self._queue.leave(caller):
            self._hiring.restart(slot.id)
            self._later(self._revive(slot, was=slot.incarnation))

    def status(self) -> str:
        """Return a `PoolStatus` as JSON."""
        queue = self._queue
        evaluators = tuple(
            PoolEvaluator(
                kind=slot.kind,
                host=slot.host,
                model=slot.model,
                gpu="" if slot.kind == "sim" else slot.gpu,
                state=slot.state,
                detail=slot.detail or slot.caller,
                calls=slot.calls,
            )
            for slot in queue.slots.values()
        )
        callers = tuple(
            PoolCaller(
                name=name,
                holds=standing.holds,
                waits=queue.waiting(name),
                calls=standing.calls,
                evaluations=standing.evaluations,
            )
            for name, standing in queue.callers.items()
        )
        return PoolStatus(
            version=self._hiring.pool,
            evaluators=evaluators,
            callers=callers,
            evaluations_a_minute=self._a_minute(self._ended_evaluations),
            calls_a_minute=self._a_minute(self._ended_calls),
            up_s=time.monotonic() - self._began,
        ).model_dump_json()

    def _hear(self, caller: str, kind: PoolKind) -> None:
        self._queue.join(caller)
        self._heard[caller] = self._wanted[kind] = time.monotonic()
        # Also one that Ray has started again, of which nobody knows, or whose watch has failed.
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._watching())

    async def _watching(self) -> None:
        """Keep evaluators to what callers want and nodes have, for ever."""
        while True:
            now = time.monotonic()
            for caller in [one for one, at in self._heard.items() if now - at > SILENCE_S]:
                self.goodbye(caller)
            kinds: set[PoolKind] = {k for k, at in self._wanted.items() if now - at <= IDLE_S}
            gone, new = self._hiring.changes(self._queue.slots.values(), kinds)
            for slot in gone:
                self._queue.remove(slot.id)
                self._hiring.dismiss(slot.id)
            for slot in new:
                self._queue.add(slot)
                self._later(self._revive(slot))
            await asyncio.sleep(WATCH_S)

    async def _revive(self, slot: EvaluatorSlot, was: str | None = None) -> None:
        """Have an evaluator serve as soon as it answers; it may be starting, or again.

        Args:
            slot: The evaluator.
            was: The incarnation that is being ended, which may still answer.
        """
        late = time.monotonic() + _REVIVAL_S
        while self._is_away(slot):
            with suppress(*self._hiring.lost):
                (actor,) = self._hiring.actors(slot.id)
                self._welcome(slot, await actor.ask.remote("ready"), was)
            if self._is_away(slot):
                if time.monotonic() > late and slot.incarnation:  # one that starts waits for a GPU
                    self._queue.set_aside(slot.id, "unfit", "its actor does not come back")
                await asyncio.sleep(_PING_S)

    def _is_away(self, slot: EvaluatorSlot) -> bool:
        is_known = self._queue.slots.get(slot.id) is slot
        return is_known and slot.state in ("starting", "restarting")

    def _welcome(self, slot: EvaluatorSlot, told: Mapping[str, Any], was: str | None) -> None:
        """Let an evaluator serve that has answered, unless that is over or has been done."""
        if not self._is_away(slot):
            return
        if UNFIT in told:
            self._queue.set_aside(slot.id, "unfit", told[UNFIT])
        elif told["incarnation"] != was:
            self._opened[slot.id], slot.host = told["opened"], told["host"]
            gpu = told["gpu"] or slot.id
            self._queue.ready(slot.id, told["model"], gpu, told["incarnation"])

    def _why_none(self, kind: PoolKind, model: str) -> str:
        """Return why there will be no evaluator of this kind; "" while there may be."""
        if refused := self._all_unfit(kind):
            return refused
        slots = [one for one in self._queue.slots.values() if one.kind == kind]
        others = sorted({one.model for one in slots if one.model} - {model})
        if model and others and all(one.state in ("free", "busy", "unfit") for one in slots):
            return f"no {model} is left in the cluster, only {', '.join(others)}"
        return "" if slots else self._hiring.why_none(kind)

    def _all_unfit(self, kind: PoolKind) -> str:
        slots = self._queue.slots.values()
        is_fit = any(one.kind == kind and one.state != "unfit" for one in slots)
        first = next((one for one in slots if one.kind == kind), None)
        return "" if is_fit or first is None else f"{first.host}: {first.detail}"

    def _later(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _a_minute(self, ended: deque[float]) -> float:
        now = time.monotonic()
        while ended and now - ended[0] > _MINUTE_S:
            ended.popleft()
        return len(ended) * _MINUTE_S / max(1.0, min(_MINUTE_S, now - self._began))


def begin(home: str, pool: str, seat: str, modules: Mapping[str, Mapping[str, str]]) -> Coordinator:
    """Return the coordinator of a pool, as `seat.AsyncSeat` enters it.

    Args:
        home: The folder of kopt on this node, in which nothing of it is kept.
        pool: Its name.
        seat: What evaluators enter, `module:Class`.
        modules: The Python modules that evaluators need, by kind, with their distributions.
    """
    del home
    return Coordinator(hiring_of(pool, seat, modules))


def _grant(granted: "asyncio.Future[EvaluatorSlot | None]", slot: EvaluatorSlot | None) -> None:
    if not granted.done():
        granted.set_result(slot)
