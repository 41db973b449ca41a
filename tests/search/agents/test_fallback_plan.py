"""Hypotheses by rule: for every kind of slot, no family twice among the new ones."""

from kopt.search.advice.suggestions import Suggestion
from kopt.search.agents.rule_plans import fill_by_rule
from kopt.search.agents.slots import Slot
from support.agent_cases import CROSS, NEW, REFINE, hypothesis, round_view

VIEW = round_view()
TRAIT = Suggestion(
    kind="trait", text="Loads are narrow.", parents=(1,), families=("vectorization",)
)


def test_what_limits_the_parent_is_taken_first() -> None:
    (one,) = fill_by_rule(VIEW, (REFINE,), (TRAIT,), ())
    assert (one.slot, one.family, one.hypothesis) == (
        REFINE.id,
        "vectorization",
        "Loads are narrow.",
    )


def test_note_on_the_parent_is_taken_as_what_limits_it_is() -> None:
    note = TRAIT.model_copy(update={"kind": "note", "families": ("pass_fusion",)})
    (one,) = fill_by_rule(VIEW, (REFINE,), (note, TRAIT), ())
    assert one.family == "pass_fusion"


def test_same_suggestion_fills_one_slot_only() -> None:
    twice = (REFINE, REFINE.model_copy(update={"id": "expand-r1b0-1", "kind": "expand"}))
    one, two = fill_by_rule(VIEW, twice, (TRAIT,), ())
    assert one.hypothesis != two.hypothesis and two.parents == (1,)


def test_suggestion_for_another_parent_is_not_taken() -> None:
    elsewhere = TRAIT.model_copy(update={"parents": (3,)})
    (one,) = fill_by_rule(VIEW, (REFINE,), (elsewhere,), ())
    assert one.hypothesis != "Loads are narrow."


def test_new_slots_get_families_of_their_own() -> None:
    many = tuple(NEW.model_copy(update={"id": f"new-{n}"}) for n in range(1, 9))
    taken = (hypothesis(family="thread_utilization"),)
    families = [one.family for one in fill_by_rule(VIEW, many, (), taken)]
    assert len(set(families)) == 8 and "thread_utilization" not in families


def test_merge_keeps_the_family_and_the_order_of_its_parents() -> None:
    (one,) = fill_by_rule(VIEW, (CROSS,), (), ())
    assert (one.family, one.parents) == ("vectorization", (1, 3))


def test_retry_is_filled_by_what_mends_it() -> None:
    retry = Slot(id="retry-r1b1", kind="retry", lineage="fix", parents=(2,), why="promising")
    mend = Suggestion(kind="fix", text="Mend r1b1.", parents=(2,), families=("reduction",))
    (one,) = fill_by_rule(VIEW, (retry,), (TRAIT, mend), ())
    assert (one.hypothesis, one.family) == ("Mend r1b1.", "reduction")


def test_more_new_slots_than_families_are_still_filled() -> None:
    many = tuple(NEW.model_copy(update={"id": f"new-{n}"}) for n in range(30))
    assert len(list(fill_by_rule(VIEW, many, (), ()))) == 30
