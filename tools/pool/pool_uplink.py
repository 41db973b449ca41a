"""What is asked of a pool: each call says which piece of work it is a part of.

A pool is several GPUs of one model; a piece of work keeps to one of them (`devices/errand.py`), and
from the moment that it is told which, all of it is of that GPU or fails.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from kopt.config.callbacks import ignore
from kopt.config.errors import InfraError, KoptError
from kopt.kernels.device_facts import DeviceFacts
from kopt.tools.devices.device import Arrays
from kopt.tools.devices.errand import Errand, current_errand
from kopt.tools.remote.answers import FarAnswer, NumberAnswer, OpenedAnswer
from kopt.tools.remote.calls import Call, EndErrandCall, OnErrand, WhereCall, WidthCall
from kopt.tools.remote.link import Link
from kopt.tools.remote.reconnecting import DeviceRoute, Introduce, Uplink


class PoolUplink(Uplink):
    """Safe from several threads."""

    def __init__(self, route: DeviceRoute, show: Callable[[str], None] = ignore) -> None:
        """Connect to nothing yet; `show` is told of losing the connection."""
        super().__init__(route, show)
        self._alone = Errand()
        self._told: dict[str, DeviceFacts | None] = {self._alone.id: None}
        self._knowing = threading.Lock()  # of what was told

    def open(self, *, has_spare: bool, introduce: Introduce) -> OpenedAnswer:
        """Open the pool; work outside of any errand keeps to the GPU that this returns.

        Raises:
            SetupError: The pool has no evaluator; the message says why.
        """
        opened = super().open(has_spare=has_spare, introduce=introduce)
        self._told[self._alone.id] = opened.facts
        return opened

    def ask(self, call: Call, arrays: Arrays | None = None) -> tuple[FarAnswer, Arrays]:
        """Return the answer to a call, as `Uplink` does."""
        return super().ask(self._placed(call), arrays)

    def facts(self) -> DeviceFacts:
        """Return the GPU that the present piece of work keeps to, from now on to the end.

        Raises:
            InfraError: The pool is lost.
        """
        errand = current_errand() or self._alone
        known = self._told.get(errand.id)
        if known is None:
            answer, _ = self.ask(WhereCall())
            if not isinstance(answer, OpenedAnswer) or answer.facts is None:
                raise InfraError(f"the pool answered {answer.kind} when asked for a GPU")
            with self._knowing:  # another thread of this work may have been told by now
                known = self._told[errand.id] = self._told.get(errand.id) or answer.facts
        return known

    def width(self) -> int:
        """Return how many evaluators the pool has."""
        answer, _ = super().ask(WidthCall())
        return int(answer.value) if isinstance(answer, NumberAnswer) else 1

    def _placed(self, call: Call) -> Call:
        if not isinstance(call, OnErrand):
            return call
        errand = current_errand() or self._alone
        with self._knowing:
            if errand.id not in self._told:
                self._told[errand.id] = None
                errand.endings.append(partial(self._end, errand.id))
            facts = self._told[errand.id]
        place = {"errand": errand.id, "gpu": "" if facts is None else facts.uuid}
        return call.model_copy(update=place)

    def _end(self, errand: str) -> None:
        del self._told[errand]
        link = self._link
        if link is None or link.is_lost:
            return
        with suppress(KoptError), link.lane() as lane:  # the pool is told, if it can be
            link.ask(lane, EndErrandCall(errand=errand))

    def _refuse_another(self, link: Link, opened: OpenedAnswer) -> None:
        """Refuse a pool of another model; which of its GPUs answers first does not matter."""
        before = None if self._opened is None else self._opened.facts
        if (before and before.name) != (opened.facts and opened.facts.name):
            link.close()
            raise InfraError(
                f"{self.name} has other GPUs than before:"
                f" {opened.facts and opened.facts.name}, not {before and before.name}"
            )
