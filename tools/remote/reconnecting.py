"""A device of another process as something to ask: connected, and again when that is lost.

A call that the connection was lost under is made again: executions are repeatable, and nothing is
kept there. What is asked within a timing session is not: the session is gone with the connection,
and begins again as a whole (`tools/devices/lost_timing.py`).
"""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol

from kopt.config.callbacks import ignore
from kopt.config.errors import FarSetupError, InfraError, SetupError
from kopt.tools.devices.device import Arrays
from kopt.tools.devices.lost_timing import TimingLost

from .answers import FarAnswer, OpenedAnswer
from .calls import Call, OpenCall
from .link import Link, LinkLost

PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Before each further try to get a lost connection back."""
MOST_LOSSES = 4
"""Connections that one call may lose: what ends each of them may be the call."""
Introduce = Callable[[Link, OpenedAnswer], None]
"""Tells a new connection what the device needs there before it is used."""


class DeviceRoute(Protocol):
    """How a device of another process is reached."""

    @property
    def name(self) -> str:
        """The device as the caller calls it, `ssh://host/cuda:0`."""
        ...

    @property
    def device(self) -> str:
        """The device as that process calls it, `cuda:0`."""
        ...

    @property
    def machine(self) -> str:
        """What is connected to, in words for messages."""
        ...

    def connect(self) -> Link:
        """Return a new connection on which calls are answered.

        Raises:
            SetupError: It cannot be had; the message says why and what to do.
        """
        ...


class Uplink:
    """Safe from several threads."""

    def __init__(self, route: DeviceRoute, show: Callable[[str], None] = ignore) -> None:
        """Connect to nothing yet; `show` is told of losing connections."""
        self.name = route.name
        self._route = route
        self._show = show
        self._renewing = threading.RLock()  # of what follows
        self._link: Link | None = None
        self._opened: OpenedAnswer | None = None
        self._introduce: Introduce | None = None
        self._is_closed = False
        self._held = threading.local()

    def open(self, *, has_spare: bool, introduce: Introduce) -> OpenedAnswer:
        """Connect, open the device there, and return what it is.

        Args:
            has_spare: As in `open_device`.
            introduce: Called for each connection that is made, before any other call.

        Raises:
            SetupError: The machine or the device cannot be used; the message says how to mend it.
        """
        self._opening = OpenCall(device=self._route.device, has_spare=has_spare)
        self._introduce = introduce
        with self._renewing:
            self._link, self._opened = self._connected()
        return self._opened

    def ask(self, call: Call, arrays: Arrays | None = None) -> tuple[FarAnswer, Arrays]:
        """Return the answer to a call; it is made again where the connection is lost under it.

        Raises:
            TimingLost: It was within a timing session, which is lost, too.
            SetupError: The connection cannot be had back.
            InfraError: It is lost again and again under this call.
            KoptError: As the device there raised it.
        """
        held = getattr(self._held, "lane", None)
        if held is not None:
            return self._ask_in_session(held, call, arrays)
        for _ in range(MOST_LOSSES):
            link = self._living()
            try:
                with link.lane() as lane:
                    return link.ask(lane, call, arrays)
            except LinkLost:
                self._drop(link)
        raise InfraError(
            f"{self._route.machine}: the connection was lost {MOST_LOSSES} times under the same"
            f" call ({call.kind}); what was finished is kept"
        )

    @contextmanager
    def session(self) -> Generator[None]:
        """Keep one lane of one connection for this thread: a timing session lives there."""
        link = self._living()
        with link.lane() as lane:
            self._held.lane = (link, lane)
            try:
                yield
            finally:
                self._held.lane = None

    def close(self) -> None:
        """Hang up."""
        self._is_closed = True
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def _connected(self) -> tuple[Link, OpenedAnswer]:
        """Return a connection whose device is open and knows what it needs."""
        link = self._route.connect()
        try:
            opened = self._open_over(link)
            if self._introduce is not None:
                self._introduce(link, opened)
        except BaseException:
            link.close()
            raise
        return link, opened

    def _open_over(self, link: Link) -> OpenedAnswer:
        try:
            with link.lane() as lane:
                opened, _ = link.ask(lane, self._opening)
        except SetupError as error:
            raise lacking(self._route, error) from error
        except LinkLost as error:
            raise lacking(self._route, SetupError(link.why_ended())) from error
        assert isinstance(opened, OpenedAnswer)
        return opened

    def _ask_in_session(
        self, held: tuple[Link, int], call: Call, arrays: Arrays | None
    ) -> tuple[FarAnswer, Arrays]:
        link, lane = held
        try:
            return link.ask(lane, call, arrays)
        except LinkLost as error:
            self._drop(link)
            raise TimingLost(
                f"{self._route.machine}: the connection was lost under a timing"
            ) from error

    def _living(self) -> Link:
        """Return the connection, made again if it is lost."""
        with self._renewing:
            if self._is_closed:
                raise InfraError(f"{self.name} was closed while it was in use")
            if self._link is not None and self._link.is_lost:
                self._drop(self._link)
            if self._link is None:
                self._link = self._renewed()
            return self._link

    def _renewed(self) -> Link:
        last = ""
        for pause_s in PAUSES_S:
            self._show(
                f"the connection to {self._route.machine} is lost; trying again in {pause_s:g} s"
            )
            time.sleep(pause_s)
            try:
                link, opened = self._connected()
            except (SetupError, LinkLost) as error:
                last = str(error)
                continue
            self._refuse_another(link, opened)
            return link
        # Not an InfraError: to try the next candidate would only take as long again.
        raise FarSetupError(
            f"the connection to {self._route.machine} was lost and could not be had again in"
            f" {len(PAUSES_S)} tries over {sum(PAUSES_S):.0f} s; what was finished is"
            f" kept: start again once the machine can be reached ({last})",
            self.name,
        )

    def _refuse_another(self, link: Link, opened: OpenedAnswer) -> None:
        before, now = (None if one is None else one.facts for one in (self._opened, opened))
        if before != now:
            link.close()
            raise InfraError(
                f"{self.name} is another GPU than before:"
                f" {now and now.uuid}, not {before and before.uuid}"
            )

    def _drop(self, link: Link) -> None:
        """Let go of a lost connection, unless another thread has done so."""
        with self._renewing:
            if self._link is link:
                self._link = None
                link.close()


def lacking(route: DeviceRoute, error: SetupError) -> FarSetupError:
    """Return what a device lacks, as an error that names it."""
    return FarSetupError(f"{route.name}: {error}", route.name)
