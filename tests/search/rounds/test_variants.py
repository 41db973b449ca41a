"""Mixed changes: their techniques are told apart by variants that no model is asked for."""

import re
from dataclasses import replace
from itertools import product
from math import prod
from pathlib import Path

import pytest

from kopt.config.search_settings import load_search_settings
from kopt.search.agents.views import BranchTask, GaveUp, WrittenCandidate
from kopt.search.knowledge.records import switch_of, technique_of
from kopt.search.records.budget import Budget
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.records.members import Proposal
from kopt.search.rounds.advance import run_search
from kopt.search.rounds.agents import Agents
from kopt.search.rounds.run_context import Search
from kopt.search.store.store import RunStore
from support.populations import passed
from support.scripted_agents import shape
from support.scripted_runs import new_store
from support.technique_world import World, WorldRoles, roles_of, world_search

GAINS = {"vector_loads": 2.0, "warp_shuffles": 1.25}
SEARCH = load_search_settings().with_beam(1, 1).model_copy(update={"combine_top_k": 0})


class MixingRoles(WorldRoles):
    """Writes candidates that apply both techniques and can switch each off."""

    def write(self, task: BranchTask) -> WrittenCandidate | GaveUp:
        """Return a source with a switch for each technique."""
        self._ask(f"{task.id}/coder/0")
        switches = ", ".join(f"{switch_of(one)}: [1, 0]" for one in GAINS)
        return WrittenCandidate(
            f"vectorization 8.0 /* kopt: 1\ntune: {{{switches}}}\n*/", "both at once"
        )


def _choices(source: str) -> tuple[dict[str, int], ...]:
    names = re.findall(r"WITH_\w+", source)
    return tuple(
        dict(zip(names, values, strict=True)) for values in product((1, 0), repeat=len(names))
    )


def _evaluate(job: EvaluationJob) -> Evaluation:
    on = [GAINS[technique_of(name) or ""] for name, value in job.tune.items() if value]
    return passed(8.0 / prod(on), equivalence=f"{job.source}{sorted(job.tune.items())}")


def _mixing(store: RunStore) -> Search:
    parts = world_search(store, World(), evaluate=_evaluate)
    roles = MixingRoles(roles_of(parts).desk, World(planned=("vector_loads",)))

    def shaped(source: str, name: str) -> Proposal:
        return shape(source, name).model_copy(update={"tune": _choices(source)[0]})

    assert parts.memory is not None
    return replace(
        parts,
        agents=Agents(roles=lambda: roles, shape=shaped),
        memory=replace(parts.memory, choices=_choices),
    )


def test_gain_of_each_technique_of_a_mixed_change_is_learned(tmp_path: Path) -> None:
    with new_store(tmp_path, search=SEARCH) as store:
        run_search(_mixing(store))
        learned = {one.techniques: one.measured for one in store.reader.samples()}
        variants = [one for one in store.reader.members() if one.proposer == "ablation"]
        assert learned == {
            ("vector_loads",): pytest.approx(0.693, abs=1e-3),
            ("warp_shuffles",): pytest.approx(0.223, abs=1e-3),
        }
        assert [one.tune for one in variants] == [{"WITH_VECTOR_LOADS": 1, "WITH_WARP_SHUFFLES": 0}]
        calls = [row["id"] for row in store.reader.calls() if "/b" in row["id"]]
        assert calls == ["r1/b0/coder/0"], "no model was asked for a variant"


def test_mixed_change_that_the_budget_does_not_let_apart_is_learned_whole(tmp_path: Path) -> None:
    with new_store(tmp_path, search=SEARCH, budget=Budget(evaluations=2)) as store:
        run_search(_mixing(store))
        (sample,) = store.reader.samples()
        assert set(sample.techniques) == set(GAINS)
        assert sample.measured == pytest.approx(0.916, abs=1e-3)
