"""How far trajectories have come, told by branches and candidates alone."""

from kopt.config.search_settings import SearchSettings, load_search_settings
from kopt.search.records.evaluation import Evaluation
from kopt.search.records.members import Member
from kopt.search.records.run_state import BranchRow
from kopt.search.selection.trajectories import Trajectory, slot_id, trace_trajectories
from support.populations import failed, member, passed, timed


def _settings(**changes: int) -> SearchSettings:
    found = load_search_settings()
    size = {"trajectories": 1, "steps": 2, "most_steps": 4, **changes}
    return found.model_copy(update={"maic_rl": found.maic_rl.model_copy(update=size)})


def _branch(step: int, candidate: int | None, trajectory: int = 1, action: int = 1) -> BranchRow:
    return BranchRow(
        id=f"r{step}/b{trajectory * 8 + action}",
        round=step,
        ordinal=trajectory * 8 + action,
        slot=slot_id(trajectory, step, action),
        lineage="expand",
        hypothesis={},
        state="failed" if candidate is None else "delivered",
        candidate=candidate,
        why="the model refused" if candidate is None else None,
    )


def _members(*evaluations: Evaluation) -> tuple[Member, ...]:
    return tuple(member(seq, one) for seq, one in enumerate(evaluations))


def _traced(
    members: tuple[Member, ...], *branches: BranchRow, preparing: tuple[str, ...] = ()
) -> Trajectory:
    return trace_trajectories(members, branches, _settings(), preparing)[0]


def test_every_trajectory_begins_with_the_starting_kernel() -> None:
    traced = trace_trajectories(_members(passed(8.0)), (), _settings(trajectories=3))
    assert [(one.number, one.program, one.steps, one.is_finished) for one in traced] == [
        (1, 0, 0, False),
        (2, 0, 0, False),
        (3, 0, 0, False),
    ]


def test_step_goes_on_from_its_fastest_candidate() -> None:
    members = _members(passed(8.0), passed(7.0), passed(4.0))
    branches = (_branch(1, 1), _branch(1, 2, action=2))
    assert _traced(members, *branches) == Trajectory(1, program=2, steps=1, has_gained=True)


def test_step_that_makes_nothing_faster_leaves_the_program() -> None:
    slower = _traced(_members(passed(8.0), passed(9.0)), _branch(1, 1))
    assert (slower.program, slower.steps, slower.has_gained) == (0, 1, False)
    wrong = _traced(_members(passed(8.0), failed()), _branch(1, 1))
    assert (wrong.program, wrong.steps) == (0, 1)
    nothing = _traced(_members(passed(8.0)), _branch(1, None))
    assert (nothing.program, nothing.steps) == (0, 1)


def test_gain_within_noise_is_none_on_a_gpu() -> None:
    noisy = _members(timed(8.0, 1.0, half_width=0.02), timed(7.9, 1.01, half_width=0.02))
    assert _traced(noisy, _branch(1, 1)).program == 0
    sure = _members(timed(8.0, 1.0, half_width=0.001), timed(7.9, 1.01, half_width=0.001))
    assert _traced(sure, _branch(1, 1)).program == 1


def test_step_that_prepares_another_is_kept_if_it_costs_nothing() -> None:
    prepared = member(1, passed(8.0), techniques=("prepares",))
    slower = member(1, passed(8.5), techniques=("prepares",))
    start = member(0, passed(8.0))
    assert _traced((start, prepared), _branch(1, 1), preparing=("prepares",)).program == 1
    assert _traced((start, prepared), _branch(1, 1)).program == 0
    assert _traced((start, slower), _branch(1, 1), preparing=("prepares",)).program == 0


def test_trajectory_ends_after_its_steps_unless_the_last_one_has_gained() -> None:
    members = _members(passed(8.0), passed(4.0), passed(5.0))
    assert _traced(members, _branch(1, 1), _branch(2, 2)).is_finished
    gaining = _members(passed(8.0), passed(4.0), passed(3.0), passed(2.0), passed(1.0))
    steps = [_branch(step, step) for step in (1, 2, 3, 4)]
    assert not _traced(gaining, *steps[:2]).is_finished
    assert not _traced(gaining, *steps[:3]).is_finished
    assert _traced(gaining, *steps).is_finished


def test_candidate_that_a_later_check_refuted_is_no_program_to_go_on_from() -> None:
    refuted = member(1, passed(4.0), tie=failed())
    assert _traced((member(0, passed(8.0)), refuted), _branch(1, 1)).program == 0
