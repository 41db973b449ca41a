"""Who is told what by a pool's coordinator: actors are played, and so is their dying."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from kopt.kernels.pool_status import PoolStatus
from kopt.server.pool import coordinator
from kopt.server.pool.coordinator import Coordinator
from kopt.server.pool.hiring import Hiring
from support.played_hiring import PlayedActor, PlayedHiring

H100, A100 = "NVIDIA H100", "NVIDIA A100"


Scene = Callable[[Coordinator, PlayedHiring], Awaitable[None]]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WATCH_S", "_PING_S"):
        monkeypatch.setattr(coordinator, name, 0.001)


def _play(scene: Scene, *actors: PlayedActor) -> None:
    async def play() -> None:
        hiring = PlayedHiring({f"s{number}": one for number, one in enumerate(actors)})
        await asyncio.wait_for(scene(Coordinator(cast("Hiring", hiring)), hiring), 20)

    asyncio.run(play())


def _wish(caller: str = "ada", **fields: str) -> dict[str, str]:
    return {"caller": caller, "kind": "cuda", **fields}


def _status(pool: Coordinator) -> PoolStatus:
    return PoolStatus.model_validate_json(pool.status())


def test_the_gpu_that_a_caller_likes_is_the_one_that_it_gets() -> None:
    async def scene(pool: Coordinator, _: PlayedHiring) -> None:
        await pool.hello("bob", "cuda", "", "")
        while len([one for one in _status(pool).evaluators if one.state == "free"]) < 2:
            await asyncio.sleep(0)
        assert await pool.hello("ada", "cuda", "", "GPU-b") == {"opened": "opened GPU-b"}
        assert pool.beat("ada", "cuda", H100) == 2

    _play(scene, PlayedActor(H100, "GPU-a"), PlayedActor(H100, "GPU-b"))


def test_a_cluster_without_gpus_says_so() -> None:
    async def scene(pool: Coordinator, _: PlayedHiring) -> None:
        assert await pool.hello("ada", "cuda", "", "") == {"error": "nothing for cuda"}

    _play(scene)


def test_what_a_node_lacks_is_told_where_no_other_serves() -> None:
    async def scene(pool: Coordinator, _: PlayedHiring) -> None:
        assert await pool.hello("ada", "cuda", "", "") == {"error": "box: no pynvml"}
        assert _status(pool).evaluators[0].detail == "no pynvml"

    _play(scene, PlayedActor(H100, "GPU-a", unfit="no pynvml"))


def test_another_model_is_no_substitute() -> None:
    async def scene(pool: Coordinator, _: PlayedHiring) -> None:
        await pool.hello("ada", "cuda", "", "")
        answer = await pool.hello("bob", "cuda", H100, "")
        assert answer == {"error": f"no {H100} is left in the cluster, only {A100}"}

    _play(scene, PlayedActor(A100, "GPU-a"))


def test_an_evaluator_that_is_long_in_coming_is_waited_for_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coordinator, "_ANSWER_S", 0.01)

    async def scene(pool: Coordinator, hiring: PlayedHiring) -> None:
        assert await pool.hello("ada", "cuda", "", "") == {"wait": "waiting for cuda"}
        hiring.cluster["s0"].is_dead = False
        while "opened" not in await pool.hello("ada", "cuda", "", ""):
            pass

    _play(scene, PlayedActor(H100, "GPU-a", is_dead=True))


def test_a_death_is_the_actors_where_another_incarnation_comes() -> None:
    async def scene(pool: Coordinator, hiring: PlayedHiring) -> None:
        lease = (await pool.acquire(_wish()))["lease"]
        hiring.cluster["s0"].incarnation += 1
        assert await pool.lost(lease) == "actor"
        again = await pool.acquire(_wish())
        assert again["incarnation"] == "GPU-a/1"
        assert await pool.lost(again["lease"]) == "node"  # it answers as before: a hiccup
        assert await pool.lost(lease) == "node"  # long over

    _play(scene, PlayedActor(H100, "GPU-a"))


def test_a_death_with_the_node_is_the_nodes_and_its_gpu_is_gone() -> None:
    async def scene(pool: Coordinator, hiring: PlayedHiring) -> None:
        found = await pool.acquire(_wish())
        hiring.cluster["s0"].is_dead = True
        del hiring.cluster["s0"]
        assert await pool.lost(found["lease"]) == "node"
        hiring.cluster["s1"] = PlayedActor(H100, "GPU-b")
        assert await pool.acquire(_wish(gpu="GPU-a")) == {"gone": "GPU-a"}
        assert (await pool.acquire(_wish()))["gpu"] == "GPU-b"

    _play(scene, PlayedActor(H100, "GPU-a"))


def test_a_gpu_that_is_gone_is_not_waited_for_while_others_start_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coordinator, "_REVIVAL_S", 0.05)

    async def scene(pool: Coordinator, _: PlayedHiring) -> None:
        await pool.hello("ada", "cuda", "", "")
        assert await pool.acquire(_wish(gpu="GPU-gone")) == {"gone": "GPU-gone"}

    _play(scene, PlayedActor(H100, "GPU-a"), PlayedActor(H100, "GPU-b", is_dead=True))


def test_what_waits_for_an_evaluator_that_becomes_unfit_is_told() -> None:
    async def scene(pool: Coordinator, hiring: PlayedHiring) -> None:
        held = await pool.acquire(_wish())
        waiting = asyncio.create_task(pool.acquire(_wish(gpu="GPU-a")))
        await asyncio.sleep(0)
        hiring.cluster["s0"].unfit = "its disk is full"
        assert await pool.lost(held["lease"]) == "node"
        assert await waiting == {"gone": "GPU-a"}

    _play(scene, PlayedActor(H100, "GPU-a"))


def test_where_no_evaluator_is_fit_any_more_nobody_waits_for_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coordinator, "_ANSWER_S", 0.01)

    async def scene(pool: Coordinator, hiring: PlayedHiring) -> None:
        held = await pool.acquire(_wish())
        waiting = asyncio.create_task(pool.acquire(_wish()))
        await asyncio.sleep(0)
        hiring.cluster["s0"].unfit = "the GPU has fallen off the bus"
        assert await pool.lost(held["lease"]) == "node"
        assert await waiting == {"error": "box: the GPU has fallen off the bus"}
        assert _status(pool).callers[0].waits == 0

    _play(scene, PlayedActor(H100, "GPU-a"))


def test_a_watch_that_fails_begins_again_with_the_next_word_of_a_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene(pool: Coordinator, hiring: PlayedHiring) -> None:
        right, fails = hiring.changes, iter([True])

        def changes(*asked: Any) -> Any:
            if next(fails, False):
                raise ConnectionError("the head does not answer")
            return right(*asked)

        monkeypatch.setattr(hiring, "changes", changes)
        asked = asyncio.create_task(pool.acquire(_wish()))
        while not asked.done():
            pool.beat("ada", "cuda", "")
            await asyncio.sleep(0)
        assert asked.result()["gpu"] == "GPU-a"

    _play(scene, PlayedActor(H100, "GPU-a"))


def test_a_wish_whose_answer_was_lost_on_the_way_is_granted_once() -> None:
    async def scene(pool: Coordinator, _: PlayedHiring) -> None:
        first = await pool.acquire(_wish(errand="e"), "t1")
        assert await pool.acquire(_wish(errand="e"), "t1") == first
        waiting = [asyncio.create_task(pool.acquire(_wish(), "t2")) for _ in range(2)]
        while not _status(pool).callers[0].waits:
            await asyncio.sleep(0)
        waiting.pop(0).cancel()  # the connection of the first was lost
        await asyncio.sleep(0)
        assert _status(pool).callers[0].waits == 1
        pool.release(first["lease"])
        second = await waiting[0]
        assert second["lease"] != first["lease"]
        pool.release(second["lease"])
        assert [one.state for one in _status(pool).evaluators] == ["free"]

    _play(scene, PlayedActor(H100, "GPU-a"))


def test_a_caller_that_is_silent_loses_what_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(pool: Coordinator, hiring: PlayedHiring) -> None:
        held = await pool.acquire(_wish("ada"))
        waiting = asyncio.create_task(pool.acquire(_wish("bob")))
        monkeypatch.setattr(coordinator, "SILENCE_S", 0.05)
        while not hiring.restarted:
            pool.beat("bob", "cuda", H100)
            await asyncio.sleep(0)
        assert not waiting.done()  # the old process may still answer
        hiring.cluster["s0"].incarnation += 1
        while not waiting.done():
            pool.beat("bob", "cuda", H100)
            await asyncio.sleep(0)
        assert waiting.result()["incarnation"] == "GPU-a/1"
        assert not pool.release(held["lease"])
        assert [one.name for one in _status(pool).callers] == ["bob"]

    _play(scene, PlayedActor(H100, "GPU-a"))


def test_a_pool_that_nobody_uses_gives_its_gpus_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(pool: Coordinator, hiring: PlayedHiring) -> None:
        found = await pool.acquire(_wish(errand="e"))
        pool.release(found["lease"])
        pool.end_errand("ada", "e")
        status = _status(pool)
        assert (status.callers[0].calls, status.callers[0].evaluations) == (1, 1)
        assert status.evaluations_a_minute > 0
        pool.goodbye("ada")
        assert hiring.hired
        monkeypatch.setattr(coordinator, "IDLE_S", 0.0)
        while hiring.hired:
            await asyncio.sleep(0)
        assert _status(pool).evaluators == ()

    _play(scene, PlayedActor(H100, "GPU-a"))
