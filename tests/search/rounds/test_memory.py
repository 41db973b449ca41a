"""What a run remembers: what it began with, what each round taught, what it tells the others."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.callbacks import ignore
from kopt.config.errors import SetupError
from kopt.config.search_settings import load_search_settings
from kopt.search.knowledge.base import parse_base
from kopt.search.knowledge.ledger import LedgerBusy
from kopt.search.knowledge.records import Sample
from kopt.search.knowledge.store import KnowledgeStore
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.rounds.advance import run_search
from kopt.search.rounds.run_context import RunContext, Search
from kopt.search.store.store import RunStore
from kopt.search.store.taught import StatedProgram
from support.bench_results import H100
from support.populations import failed, timed
from support.scripted_agents import evaluate_line
from support.scripted_runs import new_store
from support.scripted_runs import search as sweeping
from support.scripted_steps import KERNEL, Steps, candidate
from support.technique_world import World, remembering, roles_of, world_search

pytestmark = pytest.mark.slow  # whole runs that remember
BEAM = load_search_settings().with_beam(2, 2).model_copy(update={"fix_attempts": 0})
PLANNED = World(
    {"vector_loads": 2.0, "warp_shuffles": 0.5, "one_barrier": 0.0},
    planned=("vector_loads", "warp_shuffles", "one_barrier"),
)


def _ran(home: Path, world: World = PLANNED, run: str = "run-1", **fields: object) -> RunStore:
    store = new_store(home, run, **{"search": BEAM, **fields})
    run_search(world_search(store, world))
    return store


def _shared(home: Path) -> tuple[Sample, ...]:
    with KnowledgeStore(home / "knowledge") as shared:
        return shared.samples()


def test_every_technique_of_a_beam_is_learned_from(tmp_path: Path) -> None:
    with _ran(tmp_path) as store:
        by_technique = {one.techniques: one for one in reversed(store.reader.samples())}
        gained = by_technique[("vector_loads",)]
        assert gained.outcome == "gained"
        assert gained.measured == pytest.approx(0.693, abs=1e-3)
        assert by_technique[("warp_shuffles",)].outcome == "lost"
        assert by_technique[("one_barrier",)].outcome == "failed"
        assert gained.state != "unknown" and gained.signature_before is not None
        assert gained.predicted is not None and gained.predicted_interval is not None


def test_what_was_learned_is_told_to_the_shared_base_under_the_name_of_the_run(
    tmp_path: Path,
) -> None:
    with _ran(tmp_path) as store:
        own = [one.id.replace("this/", "run-1/") for one in store.reader.samples()]
    assert sorted(one.id for one in _shared(tmp_path)) == sorted(own) != []
    assert {one.run for one in _shared(tmp_path)} == {"run-1"}


def test_second_run_begins_with_what_the_first_has_learned(tmp_path: Path) -> None:
    _ran(tmp_path).close()
    with _ran(tmp_path, run="run-2") as store:
        sha = store.reader.state().knowledge_sha
        assert sha is not None
        base = parse_base(store.reader.blob(sha).decode())
        learned = [
            evidence
            for (_, techniques), entry in base.entries.items()
            if techniques == ("vector_loads",)
            for origins in entry.evidence.values()
            for evidence in origins.values()
        ]
        assert sum(one.gained for one in learned) > 0


def test_run_goes_by_the_base_that_it_began_with_whatever_others_learn(tmp_path: Path) -> None:
    with new_store(tmp_path, search=BEAM) as store:
        search = world_search(store, PLANNED)
        RunContext(search).memory.begin()
        before = store.reader.state().knowledge_sha
        _ran(tmp_path, run="run-2").close()
        run_search(search)
        assert store.reader.state().knowledge_sha == before
        assert all("run-2" not in one.id for one in store.reader.samples())


def test_run_without_memory_reads_nothing_and_teaches_nothing(tmp_path: Path) -> None:
    off = BEAM.model_copy(update={"memory": "off"})
    with _ran(tmp_path, search=off) as store:
        assert store.reader.state().knowledge_sha is None
        assert store.reader.samples() == ()
    assert not (tmp_path / "knowledge").exists()


def test_planner_is_advised_on_the_leader_and_told_what_was_drawn_is_kept(tmp_path: Path) -> None:
    with new_store(tmp_path, search=BEAM) as store:
        search = world_search(store, PLANNED)
        run_search(search)
        view = roles_of(search).views[0]
        (advice,) = view.advice
        assert advice.candidate == view.beam[0] and len(advice.drawn) > 1
        document = store.reader.blob(store.reader.rounds()[1].plan_sha or "")
        assert advice.drawn[0].technique.id.encode() in document


def test_technique_that_nobody_knows_is_not_claimed(tmp_path: Path) -> None:
    with _ran(tmp_path, World(planned=("made_up_by_a_model",))) as store:
        assert {one.techniques for one in store.reader.members()} == {()}
        assert store.reader.samples() == ()


def test_state_of_a_program_is_found_once_and_kept_with_it(tmp_path: Path) -> None:
    with _ran(tmp_path) as store:
        start = store.reader.members()[0]
        found = store.reader.document(start, "state", StatedProgram)
        assert found is not None
        assert found.signature.bottleneck != "unknown" and found.decided_by in ("rule", "model")
        added = [
            one.data["candidate"]
            for one in store.reader.events()
            if one.kind == "document_added" and one.data["document"] == "state"
        ]
        assert len(added) == len(set(added)) > 0


def test_what_the_full_check_refutes_is_revoked_and_learned_as_a_failure(tmp_path: Path) -> None:
    def refuting(job: EvaluationJob) -> Evaluation:
        return failed() if job.level == "full" and job.candidate else evaluate_line(job)

    with new_store(tmp_path, search=BEAM) as store:
        search = world_search(store, PLANNED, evaluate=refuting)
        run_search(search)
        taught = store.reader.taught()
        revoked = {name for one in taught.values() for name in one.revoked}
        assert revoked
        refuted = [one for one in store.reader.samples() if one.id.endswith("/refuted")]
        assert {one.outcome for one in refuted} == {"failed"}
    shared = {one.id for one in _shared(tmp_path)}
    assert not shared & {name.replace("this/", "run-1/") for name in revoked}


def test_finished_run_tells_nothing_twice(tmp_path: Path) -> None:
    with _ran(tmp_path) as store:
        with KnowledgeStore(tmp_path / "knowledge") as shared:
            version = shared.base().version
        run_search(world_search(store, PLANNED))
    with KnowledgeStore(tmp_path / "knowledge") as shared:
        assert shared.base().version == version


def test_run_on_a_gpu_teaches_measured_gains_with_their_intervals(tmp_path: Path) -> None:
    def measured(job: EvaluationJob) -> Evaluation:
        found = evaluate_line(job)
        time_us = None if found.latency is None else found.latency.value
        return found if time_us is None else timed(1.0, 8.0 / time_us)

    with new_store(tmp_path, search=BEAM, device="cuda:0", gpu=H100, arch="sm_90a") as store:
        run_search(world_search(store, PLANNED, evaluate=measured))
        gained = next(one for one in store.reader.samples() if one.outcome == "gained")
    assert (gained.provenance, gained.device, gained.arch) == ("measured", H100.name, "sm_90a")
    assert gained.interval is not None and gained.measured is not None
    assert gained.interval[0] < gained.measured < gained.interval[1]
    with KnowledgeStore(tmp_path / "knowledge") as shared:
        keys = {key for entry in shared.base().entries.values() for key in entry.evidence}
    assert keys == {"sm_90a"}


def test_busy_base_is_told_after_the_next_round(tmp_path: Path) -> None:
    told = 0

    def share() -> KnowledgeStore:
        nonlocal told
        told += 1
        if told <= 2:
            raise LedgerBusy("samples.sqlite was busy for 30 s")
        return KnowledgeStore(tmp_path / "knowledge")

    with new_store(tmp_path, search=BEAM) as store:
        assert run_search(_sharing(store, share)).status == "done"
        taught = [one.id.replace("this/", "run-1/") for one in store.reader.samples()]
    assert taught and [one.id for one in _shared(tmp_path)] == taught


def test_base_that_is_busy_to_the_end_is_told_when_the_run_is_resumed(tmp_path: Path) -> None:
    def share() -> KnowledgeStore:
        raise LedgerBusy("samples.sqlite was busy for 30 s")

    with new_store(tmp_path, search=BEAM) as store:
        with pytest.raises(LedgerBusy):
            run_search(_sharing(store, share))
        assert store.reader.state().status == "paused" and not _shared(tmp_path)
        store.resume(store.reader.state().settings)
        assert run_search(world_search(store, PLANNED)).status == "done"
    assert _shared(tmp_path)


def test_a_damaged_base_costs_the_sharing_and_not_the_run(tmp_path: Path) -> None:
    def share() -> KnowledgeStore:
        raise SetupError("samples.sqlite is damaged")

    said: list[str] = []
    with new_store(tmp_path, search=BEAM) as store:
        assert run_search(_sharing(store, share, said.append)).status == "done"
        assert store.reader.samples()  # kept in the run's own file
    assert said and all("not shared: samples.sqlite is damaged" in line for line in said)


def _sharing(
    store: RunStore, share: Callable[[], KnowledgeStore], say: Callable[[str], None] = ignore
) -> Search:
    parts = world_search(store, PLANNED)
    assert parts.memory is not None
    return replace(parts, memory=replace(parts.memory, share=share, say=say))


def test_a_run_goes_on_without_a_base_that_is_damaged_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "knowledge").mkdir()
    (tmp_path / "knowledge" / "samples.sqlite").write_bytes(b"no database" * 100)
    said: list[str] = []
    with new_store(tmp_path, search=BEAM) as store:
        found = world_search(store, PLANNED)
        assert found.memory is not None
        found = replace(found, memory=replace(found.memory, say=said.append))
        assert run_search(found).status == "done"
        assert store.reader.members()
    assert "begins without what was learned before" in said[0]
    assert all("Rename samples.sqlite" in line for line in said)


def test_step_of_a_caller_that_names_its_technique_is_learned_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(tmp_path)
    steps.install(monkeypatch.setattr)
    named = candidate(4.0, techniques=("vector_loads",), parents=(0,))
    result = steps.take(named, candidate(3.0, "unnamed", parents=(0,)), kernel=KERNEL)
    with KnowledgeStore(steps.settings.knowledge) as shared:
        (sample,) = shared.samples()
    assert (sample.run, sample.techniques, sample.outcome) == (
        result.run,
        ("vector_loads",),
        "gained",
    )


def test_sweep_of_a_run_without_a_model_is_learned_from(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        run_search(replace(sweeping(store), memory=remembering(tmp_path)))
        samples = store.reader.samples()
    assert {one.techniques for one in samples} == {("tune_constants",)}
    assert samples[0].outcome == "gained" and samples[0].predicted is not None
