"""A comparison names what is new, gone and other, and by how much."""

from kopt.search.knowledge.diff import Difference, compare
from kopt.search.knowledge.edits import AddNote, AdjustPrior, Deprecate, Revive
from kopt.search.knowledge.projection import LedgerChange
from support.knowledge_cases import SEED, STATE, TECHNIQUE, changes_of, edit, projected, sample

NAME = f"{STATE}: {TECHNIQUE}"


def _only(found: tuple[Difference, ...]) -> Difference:
    (one,) = found
    return one


def test_a_base_does_not_differ_from_itself() -> None:
    base = projected(changes_of(1, 30))
    assert compare(base, base) == ()


def test_more_tries_are_told_with_what_was_known_before() -> None:
    changes = [(1, sample(1)), (2, sample(2, outcome="failed", measured=None))]
    one = _only(compare(projected(changes[:1]), projected(changes)))
    assert (one.subject, one.name, one.change) == ("entry", NAME, "changed")
    (evidence,) = one.evidence
    assert (evidence.arch_key, evidence.before.tries, evidence.after.tries) == ("sm_90a", 1, 2)


def test_evidence_of_all_origins_is_told_together() -> None:
    theirs = projected([(1, sample(1))], "k2")
    one = _only(compare(projected([]), projected([(1, sample(2))], imports=[theirs])))
    assert one.evidence[0].after.tries == 2


def test_new_and_lost_items_are_told() -> None:
    found = compare(SEED, projected([(1, sample(1, state="odd", previous="vector_loads"))]))
    assert [(one.subject, one.name, one.change) for one in found] == [
        ("state", "odd", "added"),
        ("entry", f"odd: {TECHNIQUE}", "added"),
        ("pair", f"vector_loads before {TECHNIQUE}", "changed"),
    ]
    back = compare(projected([(1, sample(1, state="odd"))]), SEED)
    assert [one.change for one in back] == ["removed", "removed"]


def test_edits_are_told_as_sentences() -> None:
    changes: list[LedgerChange] = [
        (1, edit(AdjustPrior, gain=0.0)),
        (1, edit(AddNote, text="needs registers")),
        (1, edit(Deprecate)),
    ]
    edited = projected(changes)
    told = _only(compare(projected([]), edited)).told
    assert told[0].startswith("prior 1.00x as 1 tries, was 1.")
    assert told[0].endswith(": user: a reason")
    assert told[1:] == ("note: needs registers", "deprecated: not drawn any more")
    again = projected([*changes, (2, edit(Revive))])
    assert _only(compare(edited, again)).told == ("drawn again",)
