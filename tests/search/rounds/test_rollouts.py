"""Trajectories of drawn techniques: what they try, when they end, what they are decided by."""

from pathlib import Path
from typing import Any

import pytest

from kopt.config.search_settings import SearchSettings, load_search_settings
from kopt.search.agents.plans import Plan
from kopt.search.records.budget import Budget
from kopt.search.rounds.advance import run_search
from kopt.search.rounds.run_context import RunContext
from kopt.search.store.store import RunStore
from support.scripted_agents import labelled_state
from support.scripted_runs import new_store
from support.technique_world import World, roles_of, world_search

pytestmark = pytest.mark.slow  # whole runs
GAINS = {"vector_loads": 2.0, "warp_shuffles": 1.5, "one_barrier": 1.2}


def maic(**changes: Any) -> SearchSettings:
    """Return the settings of a small search by trajectories."""
    found = load_search_settings()
    size = {"trajectories": 3, "steps": 2, "most_steps": 3, "at_once": 2, "update_every": 2}
    rollouts = found.maic_rl.model_copy(update={**size, **changes.pop("maic_rl", {})})
    return found.model_copy(
        update={"strategy": "maic_rl", "maic_rl": rollouts, "fix_attempts": 0, **changes}
    )


def _slots(store: RunStore) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for branch in store.reader.branches():
        found.setdefault(branch.round, []).append(branch.slot)
    return found


def test_run_follows_its_trajectories_to_the_end(tmp_path: Path) -> None:
    with new_store(tmp_path, search=maic()) as store:
        state = run_search(world_search(store, World(dict.fromkeys(GAINS, 1.0))))
        slots = _slots(store)
        assert slots == {
            1: ["t1s1a1", "t2s1a1"],
            2: ["t1s2a1", "t2s2a1"],
            3: ["t3s1a1"],
            4: ["t3s2a1"],
        }
        assert {one.kind for one in store.reader.rounds()} >= {"start", "rollouts"}
        assert (state.status, state.stop_reason) == ("done", "rounds")
        assert state.stop_detail == "all 3 trajectories have ended, after 6 steps"


def test_every_step_is_a_technique_that_was_drawn_for_the_state_of_its_program(
    tmp_path: Path,
) -> None:
    with new_store(tmp_path, search=maic()) as store:
        run_search(world_search(store, World(GAINS)))
        drawn = {
            draw.slot: draw
            for one in store.reader.rounds()
            if one.kind == "rollouts" and one.plan_sha
            for draw in Plan.model_validate_json(store.reader.blob(one.plan_sha)).draws
        }
        for branch in store.reader.branches():
            if branch.slot == "combine":
                continue
            draw, hypothesis = drawn[branch.slot], branch.hypothesis
            assert hypothesis["techniques"] == [draw.technique]
            assert hypothesis["state"] == draw.state != "unknown"
            assert hypothesis["predicted_gain"] == draw.prediction.gain
            assert branch.parents == (draw.candidate,)
            made = [one for one in store.reader.members() if one.branch == branch.id]
            assert {one.techniques for one in made} == {(draw.technique,)}


def test_trajectory_that_gains_goes_on_beyond_its_steps(tmp_path: Path) -> None:
    one = maic(maic_rl={"trajectories": 1})
    everything = World(dict.fromkeys(_catalogue(tmp_path / "names"), 1.2))
    with new_store(tmp_path, search=one) as store:
        run_search(world_search(store, everything))
        assert [slots[0] for slots in _slots(store).values()] == ["t1s1a1", "t1s2a1", "t1s3a1"]
        assert store.reader.members()[3].parents == (2,)


def _catalogue(home: Path) -> list[str]:
    """Return every technique that a run may draw."""
    with new_store(home, search=maic()) as store:
        search = world_search(store, World())
        return list(RunContext(search).memory.base().techniques)


def test_same_program_gets_different_techniques_in_one_round(tmp_path: Path) -> None:
    wide = maic(maic_rl={"trajectories": 6, "at_once": 6, "steps": 1})
    with new_store(tmp_path, search=wide) as store:
        run_search(world_search(store, World()))
        first = [one.hypothesis["techniques"][0] for one in store.reader.branches(1)]
        assert len(set(first)) == len(first) == 6


def test_several_actions_of_a_step_are_candidates_of_which_the_best_goes_on(
    tmp_path: Path,
) -> None:
    two = maic(maic_rl={"trajectories": 1, "actions": 2})
    gains = {name: 1.5 + 0.01 * place for place, name in enumerate(_catalogue(tmp_path / "n"))}
    with new_store(tmp_path, search=two) as store:
        run_search(world_search(store, World(gains)))
        assert _slots(store)[1] == ["t1s1a1", "t1s1a2"]
        made = [one for one in store.reader.members() if one.round == 1]
        best = min(made, key=lambda one: one.cost or 0.0)
        assert {one.parents for one in store.reader.branches(2)} == {(best.seq,)}


def test_draws_depend_on_the_seed_and_on_nothing_else(tmp_path: Path) -> None:
    def ran(name: str, seed: int) -> object:
        with new_store(tmp_path / name, f"run-{name}", search=maic(), seed=seed) as store:
            run_search(world_search(store, World(GAINS)))
            return labelled_state(store)["branches"], [
                one.techniques for one in sorted(store.reader.members(), key=lambda one: one.order)
            ]

    first = ran("one", 0)
    assert ran("two", 0) == first
    assert ran("three", 1) != first


def test_coder_is_told_the_profile_of_the_program_it_starts_from(tmp_path: Path) -> None:
    with new_store(tmp_path, search=maic()) as store:
        search = world_search(store, World(GAINS))
        run_search(search)
        for task in roles_of(search).tasks:
            if task.lineage == "expand":
                assert task.documents.profiles.keys() == {task.parents[0].seq}
                assert task.advice is not None and task.advice.drawn == ()


def test_minimal_agent_draws_nothing_and_is_asked_for_nothing_but_code(tmp_path: Path) -> None:
    with new_store(tmp_path, search=maic(agent="minimal", combine_top_k=0)) as store:
        search = world_search(store, World(GAINS))
        run_search(search)
        roles = {row["id"].split("/")[1][:1] for row in store.reader.calls()}
        assert roles - {"v"} == {"b"}  # branches, and the reading of a finalist
        assert {one.techniques for one in store.reader.members()} == {()}


def test_budget_cuts_a_round_short_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    with new_store(tmp_path / "whole", search=maic()) as whole:
        run_search(world_search(whole, World(GAINS)))
        expected = labelled_state(whole)["members"]
    with new_store(tmp_path, search=maic(), budget=Budget(evaluations=4)) as store:
        state = run_search(world_search(store, World(GAINS)))
        assert (state.status, len(store.reader.members())) == ("budget", 4)
        store.resume(state.settings.model_copy(update={"budget": Budget()}))
        run_search(world_search(store, World(GAINS)))
        assert store.reader.state().status == "done"
        assert len(store.reader.members()) == len(expected)  # type: ignore[arg-type]  # a list


@pytest.mark.parametrize("memory", ["on", "off"])
def test_learner_goes_through_memory_after_every_second_trajectory_and_in_the_end(
    tmp_path: Path, memory: str
) -> None:
    with new_store(tmp_path, search=maic(memory=memory)) as store:
        run_search(world_search(store, World()))
        asked = [row["id"] for row in store.reader.calls() if "/learn/" in row["id"]]
        wanted = ["r2/learn/update/0", "r4/learn/update/0"] if memory == "on" else []
        assert asked == wanted
