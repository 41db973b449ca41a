"""What a caller of a pool does where its coordinator is lost or cannot begin, without Ray."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from kopt.config.errors import InfraError, SetupError
from kopt.config.pool_address import PoolAddress
from kopt.config.settings import Settings
from kopt.server.pool import cluster
from kopt.server.pool.cluster import Cluster
from kopt.server.pool.seat import UNFIT


class Lost(Exception):
    """Stands for what Ray raises of an actor that is lost."""


class _Desk:
    """A coordinator that answers with what a function returns."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self._answer = answer

    @property
    def ask(self) -> "_Desk":
        return self

    def remote(self, *asked: Any) -> Any:
        del asked
        return self._answer


class _Ray:
    """Joins nothing; its coordinator is the next of `desks`."""

    def __init__(self, *answers: Callable[[], Any]) -> None:
        self.desks = [_Desk(one) for one in answers]
        self.killed: list[_Desk] = []

    def init(self, **options: Any) -> None:
        """Join."""
        del options

    def remote(self, of: type) -> "_Maker":
        """Return what finds the coordinator."""
        del of
        return _Maker(self)

    def get(self, answer: Callable[[], Any], *, timeout: float | None = None) -> Any:
        """Return what is answered, or raise."""
        del timeout
        return answer()

    def kill(self, desk: _Desk, *, no_restart: bool) -> None:
        """End a coordinator."""
        assert no_restart
        self.killed.append(desk)


class _Maker:
    def __init__(self, ray: _Ray) -> None:
        self._ray = ray

    def options(self, **options: Any) -> "_Maker":
        assert options["get_if_exists"]
        return self

    def remote(self, *parcel: Any) -> _Desk:
        del parcel
        return self._ray.desks.pop(0)


class _Clock:
    """Time that passes by calls alone."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """Return the time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    """Return the time of `cluster.py`."""
    made = _Clock()
    monkeypatch.setattr(cluster, "time", made)
    return made


@pytest.fixture
def join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[_Ray], Cluster]:
    """Return what joins a played Ray."""

    def joined(ray: _Ray) -> Cluster:
        monkeypatch.setattr(cluster, "ray_module", lambda: ray)
        monkeypatch.setattr(cluster, "lost_errors", lambda: (Lost,))
        monkeypatch.setattr(cluster, "pickled_by_value", Mock())
        monkeypatch.setattr(cluster, "_answers", Mock(return_value=True))
        address = PoolAddress("head:6379", "sim")
        return Cluster(address, Settings(home=tmp_path), starts=False)

    return joined


def test_a_coordinator_that_is_lost_after_a_long_wait_is_asked_again(
    clock: _Clock, join: Callable[[_Ray], Cluster]
) -> None:
    def after(seconds: float) -> Callable[[], Any]:
        def lost() -> Any:
            clock.sleep(seconds)
            raise Lost

        return lost

    made = join(_Ray(after(300.0), after(1.0), after(300.0), after(1.0), lambda: "here"))
    assert made.ask("acquire", {}) == "here"


def test_a_coordinator_that_does_not_come_back_is_given_up(
    clock: _Clock, join: Callable[[_Ray], Cluster]
) -> None:
    def lost() -> Any:
        raise Lost("no such actor\nand more")

    ray = _Ray(*[lost] * 1000)
    with pytest.raises(InfraError, match=re.escape("does not come back: no such actor")):
        join(ray).ask("acquire", {})
    assert 60 < clock.now < 61


def test_a_coordinator_that_cannot_begin_is_ended_so_that_a_mended_node_is_asked_anew(
    join: Callable[[_Ray], Cluster],
) -> None:
    ray = _Ray(lambda: {UNFIT: "no numpy in /usr/bin/python"}, lambda: "mended")
    unfit = ray.desks[0]
    made = join(ray)
    with pytest.raises(SetupError, match="the pool cannot begin: no numpy"):
        made.ask("hello")
    assert ray.killed == [unfit]
    assert made.ask("hello") == "mended"


def test_a_pool_that_does_not_answer_is_told_beside_the_others(
    join: Callable[[_Ray], Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost() -> Any:
        raise Lost("no such actor")

    pools = {"b": lost, "a": lambda: "{}", "c": lambda: {UNFIT: "no numpy"}}
    monkeypatch.setattr(cluster, "pool_names", Mock(return_value=list(pools)))
    desks = {name: _Desk(answer) for name, answer in pools.items()}
    monkeypatch.setattr(cluster, "pool_named", desks.__getitem__)
    assert join(_Ray()).statuses() == {
        "a": "{}",
        "b": "does not answer: no such actor",
        "c": "no numpy",
    }
