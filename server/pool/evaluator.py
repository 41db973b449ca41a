"""One GPU, or one simulator, of a pool: what its actor does for whoever holds it.

Candidates run in processes of their own, in their sandbox, as on any machine. A call carries the
lease under which it is made: a caller that was thought dead and comes back is refused.
"""

import os
import secrets
import socket
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.config.callbacks import ignore
from kopt.config.errors import InfraError, KoptError
from kopt.config.home_use import using_home
from kopt.config.pollable_event import PollableEvent
from kopt.config.pool_address import PoolKind
from kopt.config.settings import settings_from_environment
from kopt.server.far.desk import Desk, FarLane, OpenHere
from kopt.server.far.raised import error_answer
from kopt.server.far.service import opener
from kopt.tools.devices.device import Arrays
from kopt.tools.devices.gpu_time import metered_gpu_time
from kopt.tools.remote.answers import FAR_ANSWER, FarAnswer, OpenedAnswer
from kopt.tools.remote.calls import CALL, OpenCall

from .packed_arrays import Form, packed, unpacked

Held = tuple[int, str]
"""The number of a lease, and the incarnation of the evaluator that was leased."""


class PoolSeat:
    """Entered by `seat.py`; for one thread."""

    def __init__(
        self, home: str, kind: PoolKind, jobs: int, open_here: OpenHere | None = None
    ) -> None:
        """Open the device; its processes start with the first call.

        Args:
            home: The folder of state and caches of kopt on this node.
            kind: A GPU, the one that Ray has given to this actor, or the simulator.
            jobs: Processes that the simulator may use.
            open_here: Opens the device; None: as for any other caller elsewhere.

        Raises:
            SetupError: The node lacks something.
        """
        settings = replace(settings_from_environment().without_keys(), home=Path(home), jobs=jobs)
        self._home = ExitStack()
        self._home.enter_context(using_home(settings.home))
        self._desk = Desk(open_here or opener(settings, PollableEvent()), settings, ignore)
        self._lane = FarLane()
        self._lease = 0
        self._incarnation = secrets.token_hex(8)
        device = "sim" if kind == "sim" else "cuda:0"
        opened, _ = self._desk.answer(OpenCall(device=device, has_spare=True), {}, self._lane)
        assert isinstance(opened, OpenedAnswer)
        self._opened = opened

    def ready(self) -> dict[str, Any]:
        """Return what this evaluator is."""
        facts = self._opened.facts
        return {
            "opened": self._opened.model_dump_json(),
            "model": "" if facts is None else facts.name,
            "gpu": "" if facts is None else facts.uuid,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "incarnation": self._incarnation,
        }

    def answer(
        self, held: Held, call: bytes, forms: Sequence[Form], *contents: npt.NDArray[np.uint8]
    ) -> dict[str, Any] | None:
        """Return the answer to a call of `calls.py` with its arrays, and the GPU time that it took.

        What the call raises is its answer. None: this process is not the one that was leased, but a
        later one, to which Ray has passed the call on: it knows nothing of the caller.
        """
        lease, incarnation = held
        if incarnation != self._incarnation:
            return None
        answer: FarAnswer
        outputs: Arrays = {}
        with metered_gpu_time() as meter:
            try:
                self._begin(lease)
                asked = CALL.validate_json(call)
                answer, outputs = self._desk.answer(asked, unpacked(forms, contents), self._lane)
            except Exception as error:  # the outermost frame of a call: the caller reports a bug
                answer = error_answer(error)
        out_forms, out_contents = packed(outputs)
        return {
            "answer": FAR_ANSWER.dump_json(answer),
            "forms": out_forms,
            "contents": out_contents,
            "gpu_s": meter.seconds,
        }

    def _begin(self, lease: int) -> None:
        """Let go of what the holder before has left open.

        Raises:
            InfraError: The lease is an older one.
        """
        if lease < self._lease:
            raise InfraError("this evaluator was given to another caller meanwhile")
        if lease > self._lease:
            self._lease = lease
            before, self._lane = self._lane, FarLane()
            with suppress(KoptError):  # of a session that nobody waits for
                before.stack.close()
