"""What a step suggests: from failures, the leader's profile, untried families, the beam."""

from typing import Any

from kopt.config.search_settings import load_search_settings
from kopt.kernels.families import FAMILY_CHANGES
from kopt.kernels.profile_result import Bottleneck, ProfileResult, Suspect, SuspectName
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Provenance, Status
from kopt.search.advice.fitting_note import FittingNote
from kopt.search.advice.suggestions import (
    MemorySuggestion,
    Suggestion,
    SuggestionInputs,
    make_suggestions,
)
from kopt.search.records.members import Member
from kopt.search.selection.family_standing import family_standings, untried_families
from support.populations import failed, member, passed


def _suspect(
    gain_us: float, *families: str, name: SuspectName = "narrow_access", line: int | None = None
) -> Suspect:
    return Suspect(
        name=name,
        line=line,
        statement="Loads are narrow.",
        evidence=("k: 10 ldg_16",),
        gain_us=gain_us,
        families=families,
    )


def _profile(*suspects: Suspect, families: tuple[str, ...] = ()) -> ProfileResult:
    bottleneck = Bottleneck(
        name="compute_bound",
        statement="",
        facts=(),
        families=families,
        provenance=Provenance.ESTIMATED,
    )
    estimate = type("Estimate", (), {"latency_us": 9.0})()
    fields: dict[str, Any] = {
        "suspects": suspects,
        "bottleneck": bottleneck,
        "estimate": estimate,
        "launches": (),
        "traffic": (),
        "counters": None,
        "hardware": None,
    }
    return ProfileResult.model_construct(**fields)


def _suggest(members: tuple[Member, ...], **fields: Any) -> tuple[Suggestion, ...]:
    known: dict[str, Any] = {
        "members": members,
        "beam": (0,),
        "failed": (),
        "profile": None,
        "dtypes": frozenset({"bfloat16"}),
        "standings": family_standings(members, load_search_settings()),
        "untried": untried_families(members),
        "ideas": 0,
    }
    return make_suggestions(SuggestionInputs(**(known | fields)))


ONE = (member(0, passed(9.0)),)


def test_failed_candidate_comes_first_with_its_hint() -> None:
    members = (*ONE, member(1, failed(Status.COMPILE_ERROR), family="layout"))
    pointed = Diagnostic(message="no such type", hint="spell it out")
    (fix,) = _suggest(members, failed=((members[1], pointed),))
    assert (fix.kind, fix.parents, fix.families) == ("fix", (1,), ("layout",))
    assert fix.text == "Fix #1 (compile_error): row 3 is wrong. Hint: spell it out"


def test_memory_comes_before_traits_with_what_it_expects_and_what_that_rests_on() -> None:
    remembered = MemorySuggestion(
        technique="vector_loads",
        family="vectorization",
        description="Load 16 bytes\nan access.",
        candidate=0,
        state="narrow_accesses",
        confidence=0.9,
        speed=1.25,
        interval=(0.95, 1.6),
        works=0.75,
        tries=1,
        rests_on=("sm_100a estimated: 1 try",),
        evidence=("run-1/5",),
        is_exploration=False,
    )
    found = _suggest(ONE, profile=_profile(_suspect(6.0, "layout")), remembered=(remembered,))
    memory = found[0]
    assert [one.kind for one in found] == ["memory", "trait"]
    assert (memory.parents, memory.families) == ((0,), ("vectorization",))
    assert (memory.remembered, memory.provenance) == (remembered, Provenance.ESTIMATED)
    assert memory.text == (
        "vector_loads (vectorization) on #0, which is in the state narrow_accesses: Load 16 bytes"
        " an access. Expected where it has an effect: 1.25 times its speed (0.95 to 1.60), chance"
        " of one 75% (computed); 1 try in this state; rests on: sm_100a estimated: 1 try; seen in"
        " run-1/5."
    )


def test_note_comes_before_memory_and_traits_with_its_reason_and_its_address() -> None:
    noted = FittingNote(
        candidate=0,
        document="notes:tools/docs/notes/pass_fusion.md#37",
        title="technique pass_fusion: Trigger after the loads",
        family="pass_fusion",
        why="4 of its 6 global loads stand after the trigger",
        text="When: launches overlap.",
    )
    found = _suggest(ONE, profile=_profile(_suspect(6.0, "layout")), noted=(noted,))
    assert [one.kind for one in found] == ["note", "trait"]
    note = found[0]
    assert (note.parents, note.families) == ((0,), ("pass_fusion",))
    assert (note.document, note.provenance) == (noted.document, Provenance.COMPUTED)
    assert note.text == (
        "technique pass_fusion: Trigger after the loads, for #0: 4 of its 6 global loads stand"
        " after the trigger (computed). The note: When: launches overlap."
    )


def test_trait_has_its_numbers_and_its_untried_ways_first() -> None:
    profile = _profile(_suspect(6.0, "vectorization", "layout"))
    (trait,) = _suggest(ONE, profile=profile)
    assert (trait.kind, trait.gain_us, trait.provenance) == ("trait", 6.0, Provenance.ESTIMATED)
    assert trait.families == ("layout", "vectorization")
    assert "6.00 us of 9.00 us (k: 10 ldg_16)" in trait.text
    assert (
        f"layout (not tried): {FAMILY_CHANGES['layout']}; vectorization (leading, best #0)"
        in trait.text
    )


def test_trait_with_the_largest_gain_comes_first_and_what_limits_any_kernel_is_none() -> None:
    limit = _suspect(7.0, "reduction", name="memory_latency")
    profile = _profile(limit, _suspect(1.0, "layout"), _suspect(6.0, "other"))
    traits = [one for one in _suggest(ONE, profile=profile) if one.kind == "trait"]
    assert [one.gain_us for one in traits] == [6.0, 1.0]


def test_trait_names_its_line() -> None:
    (trait,) = _suggest(ONE, profile=_profile(_suspect(6.0, "vectorization", line=12)))
    assert "(line 12; k: 10 ldg_16)" in trait.text


def test_untried_family_that_fits_the_bottleneck_is_suggested_once() -> None:
    profile = _profile(_suspect(6.0, "layout"), families=("layout", "vectorization", "divergence"))
    kinds = [(one.kind, one.families) for one in _suggest(ONE, profile=profile)]
    assert kinds == [("trait", ("layout",)), ("family", ("divergence",))]


def test_fp4_conversions_are_suggested_only_where_there_are_fp4_or_fp8_tensors() -> None:
    busy = _suspect(2.0, name="instruction_issue")
    profile = _profile(busy, families=("fp4_intrinsics",))
    assert _suggest(ONE, profile=profile) == ()
    (one,) = _suggest(ONE, profile=profile, dtypes=frozenset({"bfloat16", "uint8"}))
    assert one.families == ("fp4_intrinsics",)


def test_two_families_of_the_beam_are_joined_unless_they_were() -> None:
    members = (
        *ONE,
        member(1, passed(3.0), family="layout"),
        member(2, passed(2.0), family="reduction"),
    )
    (cross,) = _suggest(members, beam=(2, 1, 0))
    assert (cross.kind, cross.parents) == ("cross", (2, 1))
    joined = (*members, member(3, passed(4.0), family="layout", parents=(1, 2)))
    assert _suggest(joined, beam=(2, 1, 0)) == ()


def test_sweep_says_how_many_choices_are_left() -> None:
    (sweep,) = _suggest(ONE, ideas=3)
    assert sweep.kind == "sweep" and "3 ideas of its own" in sweep.text
