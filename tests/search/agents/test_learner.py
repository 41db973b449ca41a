"""What the learner may change: what rests on results that were shown, and nothing by a bad word."""

import json
from math import log
from pathlib import Path
from typing import Any

import pytest

from kopt.search.agents.learner import learn
from kopt.search.agents.memory_edits import MOST_EDITS
from kopt.search.agents.views import LearningView
from kopt.search.knowledge.edits import AddEntry, AddNote, AddTechnique, AdjustPrior, Deprecate
from kopt.search.models.errors import CallFailed
from kopt.search.models.model import ModelReply
from kopt.search.store.taught import MemoryUpdate
from support.agent_cases import means
from support.learning_cases import BYTES_STATE, LATENCY_STATE, RESULTS, learning_view
from support.scripted_desk import ScriptedDesk, desk, failure, reply, says

GAP = {
    "state": LATENCY_STATE,
    "techniques": ["deep_unroll"],
    "finding": "+22% predicted, -10% found",
    "samples": ["s2", "s3"],
}
EVALUATION = says(json.dumps({"summary": "Unrolling disappoints.", "gaps": [GAP]}))
CAUSE = {"assumption": "registers are free", "cause": "they were not", "samples": ["s2"]}
ANALYSIS = says(json.dumps({"causes": [CAUSE]}))

UNTRIED = {
    "state": BYTES_STATE,
    "techniques": ["wide_loads", "warp_reduce"],
    "samples": ["s4"],
}


def change(action: str, **fields: Any) -> dict[str, Any]:
    known = {
        "action": action,
        "state": LATENCY_STATE,
        "techniques": ["deep_unroll"],
        "gain": 0.0,
        "text": "",
        "reason": "it never gained",
        "samples": ["s2", "s3"],
    }
    return known | fields


def technique(name: str, **fields: Any) -> dict[str, Any]:
    known = {
        "id": name,
        "family": "reduction",
        "category": "latency",
        "description": "sums in pairs",
        "reason": "it is missing",
        "samples": ["s4"],
    }
    return known | fields


def update(*changes: dict[str, Any], new: tuple[dict[str, Any], ...] = ()) -> ModelReply:
    return says(json.dumps({"changes": changes, "new_techniques": new}))


def learned(
    home: Path, *script: ModelReply | CallFailed, view: LearningView | None = None
) -> tuple[MemoryUpdate, ScriptedDesk]:
    scripted = desk(*script)
    return learn(means(scripted, home), view or learning_view()), scripted


def changed(
    home: Path, *changes: dict[str, Any], new: tuple[dict[str, Any], ...] = ()
) -> MemoryUpdate:
    return learned(home, EVALUATION, ANALYSIS, update(*changes, new=new))[0]


def test_three_answers_become_edits_with_the_ids_of_their_samples(tmp_path: Path) -> None:
    note = change("add_note", text="needs registers to spare")
    found, scripted = learned(
        tmp_path, EVALUATION, ANALYSIS, update(change("adjust_prior", gain=-0.05), note)
    )
    assert [one.id for one in scripted.asked] == [
        f"r2/learn/{stage}/0" for stage in ("evaluate", "analyze", "update")
    ]
    prior, remark = found.edits
    assert isinstance(prior, AdjustPrior) and prior.gain == pytest.approx(log(0.95))
    assert isinstance(remark, AddNote) and remark.text == "needs registers to spare"
    assert prior.evidence == remark.evidence == (RESULTS[1].id, RESULTS[2].id)
    assert (prior.author, found.dropped, found.why) == ("model", (), "")


def test_what_was_answered_before_is_told_in_the_next_question_as_data(tmp_path: Path) -> None:
    _, scripted = learned(tmp_path, EVALUATION, ANALYSIS, update())
    second, third = (one.messages[0]["content"][0]["text"] for one in scripted.asked[1:])
    assert ": evaluation>>>" in second and "Unrolling disappoints." in second
    assert ": analysis>>>" in third and "registers are free" in third


def test_only_what_disappoints_is_asked_about_in_the_second_question(tmp_path: Path) -> None:
    _, scripted = learned(tmp_path, EVALUATION, ANALYSIS, update())
    text = scripted.asked[1].messages[0]["content"][0]["text"]
    gaps = text.split("half of what was predicted")[1].split("# What memory")[0]
    assert [name for name in ("s1", "s2", "s3", "s4") if f"name: {name}\n" in gaps] == [
        *("s2", "s3", "s4")
    ]


def test_without_a_gap_nothing_more_is_asked(tmp_path: Path) -> None:
    agreeing = says(json.dumps({"summary": "As predicted.", "gaps": []}))
    found, scripted = learned(tmp_path, agreeing)
    assert (found, len(scripted.asked)) == (MemoryUpdate(), 1)


@pytest.mark.parametrize("answered", [(), (EVALUATION,), (EVALUATION, ANALYSIS)])
@pytest.mark.parametrize(
    "bad",
    [
        (says("it went well"), says('{"changes": 3}')),
        (reply("refusal", refusal="no"),),
        (reply("max_tokens"), reply("max_tokens")),
        (failure("us"),),
    ],
)
def test_bad_answer_changes_nothing_and_says_why(
    tmp_path: Path, answered: tuple[ModelReply, ...], bad: tuple[ModelReply | CallFailed, ...]
) -> None:
    found, scripted = learned(tmp_path, *answered, *bad)
    assert (found.edits, scripted.script) == ((), []) and found.why


def test_clumsy_answer_is_repaired_once(tmp_path: Path) -> None:
    found, scripted = learned(
        tmp_path, EVALUATION, ANALYSIS, update(change("rewrite")), update(change("deprecate"))
    )
    assert [type(one) for one in found.edits] == [Deprecate]
    assert "changes.0.action" in scripted.told[0][-1]["text"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (change("add_note", text="x", samples=[]), "names no sample"),
        (change("add_note", text="x", samples=["s9", RESULTS[0].id]), "names no sample"),
        (change("add_note", text="x", samples=["s4"]), "none of its samples"),
        (change("add_note", text=" "), "the note is empty"),
        (change("add_note", text="x", state="nowhere"), "no state nowhere"),
        (change("add_note", text="x", techniques=["magic"]), "no technique magic"),
        (change("add_note", text="x", techniques=[]), "techniques"),
        (change("adjust_prior", techniques=["warp_reduce"]), "no entry"),
        (change("add_entry"), "already: adjust it"),
        (change("revive"), "offered already"),
        (change("deprecate", techniques=["wide_loads"]), "has gained 1 times"),
        (change("deprecate", **UNTRIED), "tried 0 times"),
    ],
)
def test_change_that_nothing_bears_out_is_dropped_with_the_reason(
    tmp_path: Path, said: dict[str, Any], why: str
) -> None:
    found = changed(tmp_path, said, change("adjust_prior"))
    assert [type(one) for one in found.edits] == [AdjustPrior]
    (dropped,) = found.dropped
    assert why in dropped and dropped.startswith(f"{said['action']} {said['state']}")


def test_new_technique_can_be_offered_at_once(tmp_path: Path) -> None:
    offered = change("add_entry", techniques=["pair_sums"], gain=0.1, samples=["s4"])
    found = changed(tmp_path, offered, new=(technique("pair_sums"),))
    first, second = found.edits
    assert isinstance(first, AddTechnique) and first.technique.is_discovered
    assert isinstance(second, AddEntry) and second.weight < 1.0
    assert found.dropped == ()


@pytest.mark.parametrize("fields", [{"id": "wide_loads"}, {"family": "magic"}, {"samples": ["s0"]}])
def test_new_technique_that_cannot_be_is_dropped(tmp_path: Path, fields: dict[str, Any]) -> None:
    found = changed(tmp_path, new=(technique("pair_sums", **fields),))
    assert found.edits == () and len(found.dropped) == 1


@pytest.mark.parametrize("gain", [1e300, -1e300])
def test_expectation_of_any_size_is_clamped(tmp_path: Path, gain: float) -> None:
    (edit,) = changed(tmp_path, change("adjust_prior", gain=gain)).edits
    assert isinstance(edit, AdjustPrior) and abs(edit.gain) < 1.5


def test_no_more_is_changed_at_once_than_a_few_entries(tmp_path: Path) -> None:
    notes = [change("add_note", text=f"note {number}") for number in range(MOST_EDITS + 2)]
    found = changed(tmp_path, *notes)
    assert (len(found.edits), len(found.dropped)) == (MOST_EDITS, 2)


def test_texts_of_any_length_are_cut(tmp_path: Path) -> None:
    (edit,) = changed(tmp_path, change("add_note", text="t\n" * 9_000, reason="r" * 9_000)).edits
    assert isinstance(edit, AddNote) and len(edit.text) <= 400 and len(edit.reason) <= 400


@pytest.mark.parametrize("kind", ["time", "user"])
def test_call_that_others_can_mend_is_raised(tmp_path: Path, kind: str) -> None:
    with pytest.raises(CallFailed):
        learned(tmp_path, EVALUATION, failure(kind))


def test_resumed_learner_asks_nothing_again(tmp_path: Path) -> None:
    expected, whole = learned(tmp_path, EVALUATION, ANALYSIS, update(change("deprecate")))
    resumed = ScriptedDesk([], whole.calls)
    assert learn(means(resumed, tmp_path), learning_view()) == expected


def test_prompts_do_not_depend_on_the_name_of_the_run(tmp_path: Path) -> None:
    renamed = tuple(
        one.model_copy(update={"id": one.id.replace("this", "run-9"), "run": "run-9"})
        for one in RESULTS
    )
    script = (EVALUATION, ANALYSIS, update())
    _, here = learned(tmp_path, *script, view=learning_view(endings={}))
    _, there = learned(tmp_path, *script, view=learning_view(samples=renamed, endings={}))
    assert [one.messages for one in here.asked] == [one.messages for one in there.asked]
