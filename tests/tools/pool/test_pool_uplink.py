"""Which GPU each piece of work keeps to, as a pool is asked."""

from collections.abc import Callable
from typing import Any, cast
from unittest.mock import Mock

import pytest

from kopt.config.errors import InfraError
from kopt.tools.devices.errand import one_errand
from kopt.tools.pool.pool_uplink import PoolUplink
from kopt.tools.remote.answers import FarAnswer, NumberAnswer, OpenedAnswer
from kopt.tools.remote.calls import Call, CopyCeilingCall, EndErrandCall, WhereCall
from kopt.tools.remote.reconnecting import DeviceRoute
from support.bench_results import H100

A, B = (H100.model_copy(update={"uuid": f"GPU-{name}"}) for name in "ab")


class _Link:
    """A connection that keeps what it is asked; each GPU that is asked for is the next."""

    is_lost = False

    def __init__(self, *gpus: Any) -> None:
        self.gpus = list(gpus)
        self.asked: list[Any] = []
        self.before_where: Callable[[], object] = lambda: None

    def connect(self) -> "_Link":
        return self

    def lane(self) -> "_Link":
        return self

    def __enter__(self) -> int:
        return 1

    def __exit__(self, *_: object) -> None:
        """Keep nothing."""

    def close(self) -> None:
        """Keep nothing."""

    def ask(self, lane: int, call: Call, arrays: object = None) -> tuple[FarAnswer, dict[str, Any]]:
        del lane, arrays
        self.asked.append(call)
        if not isinstance(call, WhereCall):
            return (OpenedAnswer(facts=A) if call.kind == "open" else NumberAnswer(value=1)), {}
        gpu = self.gpus.pop(0)
        before, self.before_where = self.before_where, lambda: None
        before()
        return OpenedAnswer(facts=gpu), {}

    name = machine = "ray"
    device = "cuda"


def _opened(link: _Link) -> PoolUplink:
    uplink = PoolUplink(cast("DeviceRoute", link))
    uplink.open(has_spare=False, introduce=lambda _link, _opened: None)
    return uplink


def _places(link: _Link) -> list[tuple[bool, str]]:
    """Return whether each measurement was part of a piece of work, and the GPU it was bound to."""
    measured = [one for one in link.asked if isinstance(one, CopyCeilingCall)]
    return [(bool(one.errand), one.gpu) for one in measured]


def test_work_is_bound_to_its_gpu_from_the_moment_that_it_is_told() -> None:
    link = _Link(B)
    uplink = _opened(link)
    with one_errand():
        uplink.ask(CopyCeilingCall())
        assert uplink.facts() == uplink.facts() == B
        uplink.ask(CopyCeilingCall())
    uplink.ask(CopyCeilingCall())  # outside of any work: on the one that the pool opened with
    assert _places(link) == [(True, ""), (True, "GPU-b"), (True, "GPU-a")]
    first, ended = link.asked[1], link.asked[-2]
    assert isinstance(ended, EndErrandCall)
    assert ended.errand == first.errand != link.asked[-1].errand
    assert uplink.facts() == A


def test_two_threads_of_a_piece_of_work_are_told_the_same_gpu() -> None:
    link = _Link(A, B)
    uplink = _opened(link)
    link.before_where = uplink.facts  # another thread is answered while this one waits
    with one_errand():
        told = uplink.facts()
        assert told == uplink.facts() == B
        uplink.ask(CopyCeilingCall())
    assert _places(link) == [(True, "GPU-b")]


def test_a_pool_that_comes_back_with_another_model_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kopt.tools.remote.reconnecting.PAUSES_S", (0.0,))
    link = _Link()
    uplink = _opened(link)
    link.is_lost = True
    other = OpenedAnswer(facts=H100.model_copy(update={"name": "NVIDIA A100"}))
    monkeypatch.setattr(link, "ask", Mock(return_value=(other, {})))
    with pytest.raises(InfraError, match="has other GPUs than before: NVIDIA A100, not"):
        uplink.ask(CopyCeilingCall())
