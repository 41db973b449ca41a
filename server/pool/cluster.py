"""A Ray cluster as one caller sees it: joined or started, and its pool's coordinator asked.

Only the process of `relay.py` uses it: Ray takes over the signals of a process, writes to its
stdout, hands its environment on to all that it starts, and ends it when the cluster's head is gone.
"""

import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from kopt.config.errors import InfraError, SetupError
from kopt.config.pool_address import PoolAddress, PoolKind
from kopt.config.ray_environment import known_ray_cluster
from kopt.config.settings import Settings, all_variables
from kopt.tools.remote.code_bundle import code_bundle
from kopt.tools.remote.ssh_client import needed_modules

from . import seat
from .ray_seam import (
    NAMESPACE,
    SIM_RESOURCE,
    RayModule,
    SeatHandle,
    lost_errors,
    pickled_by_value,
    pool_named,
    pool_names,
    ray_module,
)

EVALUATOR = "kopt.server.pool.evaluator:PoolSeat"
POOL = "pool-"
"""Begins the names of pools."""
COORDINATOR = "kopt.server.pool.coordinator:begin"
_HEAD = "node:__internal_head__"
_PIECE_BYTES = 90_000
"""Ray keeps arguments below 100 kB with an actor itself; others are lost with who made it."""
_AWAY_S = 60.0
"""Longest wait for a coordinator that Ray starts again."""
_PAUSE_S = 0.25
_STORE_BYTES = 1 << 30
_PROBE_S = 5.0
_STATUS_S = 10.0
_QUIET = {"namespace": NAMESPACE, "log_to_driver": False, "logging_level": "ERROR"}
_ADVICE = (
    "start Ray there with `ray start --head`, and here, unless this is that machine, with"
    " `ray start --address HOST:PORT`: kopt runs on a node of the cluster (docs/pool.md)"
)
_TOKEN = "a cluster that has a token wants it here, too, in ~/.ray/auth_token or RAY_AUTH_TOKEN"


class Cluster:
    """Joined, with what its pool answers; safe from several threads."""

    def __init__(self, address: PoolAddress, settings: Settings, *, starts: bool) -> None:
        """Join the cluster; `ray` alone starts one on this machine where none is.

        Args:
            address: Which.
            settings: Of this process.
            starts: Whether one may be started.

        Raises:
            SetupError: There is no Ray, or no cluster; the message says what to do.
        """
        self.ray: RayModule = ray_module()
        self.lost = lost_errors()
        self.caller = f"{socket.gethostname()}:{os.getppid()}.{os.getpid()}"
        self._pool = f"{POOL}{code_bundle().digest[:12]}"
        self._desk: SeatHandle | None = None
        self._actors: dict[tuple[str, str], SeatHandle] = {}
        self._join(address, settings, starts)
        pickled_by_value(seat)

    def close(self) -> None:
        """Say goodbye, and leave the cluster; one that was started here ends."""
        if self._desk is not None:
            with suppress(Exception):  # it would be missed after a while: nothing depends on it
                self.ray.get(self._desk.ask.remote("goodbye", self.caller), timeout=2.0)
        self.ray.shutdown()

    def ask(self, method: str, *arguments: Any, told: Callable[[], None] | None = None) -> Any:
        """Return what the coordinator answers, asked again where it was lost.

        Args:
            method: Of `Coordinator`.
            arguments: Its arguments.
            told: Called once if the answer takes more than three seconds.

        Raises:
            InfraError: It does not come back.
            SetupError: It lacks something where it runs.
        """
        late: float | None = None
        while True:
            began = time.monotonic()
            try:
                desk = self._desk  # of this turn: another thread may find that it is lost
                if desk is None:
                    desk = self._desk = self._found()
                reference = desk.ask.remote(method, *arguments)
                if told is not None and not self.ray.wait([reference], timeout=3.0)[0]:
                    told()
                answer: Any = self.ray.get(reference)
            except self.lost as error:
                self._desk = None
                now = time.monotonic()
                if late is None or now - began > _AWAY_S:  # it was there: an answer may take long
                    late = now + _AWAY_S
                if now > late:
                    raise InfraError(
                        f"the pool's coordinator does not come back: {_line(error)}"
                    ) from error
                time.sleep(_PAUSE_S)
                continue
            if lacks := _lacking(answer):
                self._desk = None
                self.ray.kill(desk, no_restart=True)  # a new one looks again at what it has
                raise SetupError(f"the pool cannot begin: {lacks}")
            return answer

    def actor(self, slot: str, incarnation: str) -> SeatHandle | None:
        """Return the actor of an evaluator; None if it is gone."""
        key = (slot, incarnation)
        if key not in self._actors:
            found: list[SeatHandle] = self.ask("handle", slot)
            if not found:
                return None
            self._actors[key] = found[0]
        return self._actors[key]

    def statuses(self) -> dict[str, str]:
        """Return what each pool in the cluster says of itself, of all versions of kopt.

        Returns:
            JSON, or in words why it says nothing, by the pool's name.
        """
        return {name: self._status(name) for name in sorted(pool_names())}

    def _status(self, name: str) -> str:
        # ValueError: it has ended since it was named.
        failures: tuple[type[Exception], ...] = (*self.lost, TimeoutError, ValueError)
        try:
            said: object = self.ray.get(pool_named(name).ask.remote("status"), timeout=_STATUS_S)
        except failures as error:
            return f"does not answer: {_line(error)}"
        return _lacking(said) or str(said)

    def _found(self) -> SeatHandle:
        """Return the pool's coordinator, started if there is none."""
        kinds: tuple[PoolKind, ...] = ("cuda", "sim")
        modules: Mapping[str, Mapping[str, str]] = {kind: needed_modules(kind) for kind in kinds}
        parcel = {
            "digest": code_bundle().digest,
            "modules": modules["sim"],
            "entry": COORDINATOR,
            "arguments": {"pool": self._pool, "seat": EVALUATOR, "modules": modules},
        }
        maker = self.ray.remote(seat.AsyncSeat).options(
            name=self._pool,
            namespace=NAMESPACE,
            get_if_exists=True,
            lifetime="detached",  # other callers go on when this one ends
            num_cpus=0,
            resources={_HEAD: 0.001},  # whose end is the cluster's end anyway
            max_restarts=-1,  # callers go on with a new one
            max_task_retries=0,  # they ask again themselves: what it knew is gone
            max_concurrency=100_000,  # each wish waits in a call of its own
            enable_task_events=False,
        )
        return maker.remote(parcel, *_pieces())

    def _join(self, address: PoolAddress, settings: Settings, starts: bool) -> None:
        cluster = address.cluster or known_ray_cluster(all_variables())
        if cluster is not None and _answers(cluster):
            try:
                self.ray.init(address=cluster, **_QUIET)
            except Exception as error:  # Ray raises many types; a bug of kopt's is none of them
                said = _line(error)
                raise SetupError(f"{cluster}: {said}; {_TOKEN}; {_ADVICE}") from error
            return
        if address.cluster is not None:
            raise SetupError(f"nothing answers at {cluster}; {_ADVICE}")
        if not starts:
            raise SetupError(f"no Ray cluster runs on this machine; {_ADVICE}")
        try:
            self.ray.init(
                address="local",
                include_dashboard=False,
                resources={SIM_RESOURCE: settings.jobs},
                object_store_memory=_STORE_BYTES,
                **_QUIET,
            )
        except Exception as error:  # as above
            raise SetupError(f"Ray does not start on this machine: {_line(error)}") from error


def _lacking(answer: object) -> str:
    """Return what a seat says that entered nothing; "" where it is an answer."""
    return f"{answer[seat.UNFIT]}" if isinstance(answer, dict) and seat.UNFIT in answer else ""


@cache
def _pieces() -> tuple[bytes, ...]:
    """Return the code, made once: who looks for a lost coordinator does so four times a second."""
    archive = code_bundle().archive()
    return tuple(
        archive[start : start + _PIECE_BYTES] for start in range(0, len(archive), _PIECE_BYTES)
    )


def _answers(cluster: str) -> bool:
    """Return whether something listens there: Ray itself would try for minutes."""
    host, _, port = cluster.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_PROBE_S):
            return True
    except OSError:
        return False


def _line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
