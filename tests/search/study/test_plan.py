"""The order of a study's runs; the arms of a study: what each name means, and what is refused."""

import json
from collections import Counter
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.config.search_settings import load_search_settings
from kopt.search.study.plan import ABLATIONS, StudyPlan, make_arms, with_bases
from support.study_cases import plan


def test_every_arm_runs_every_kernel_in_every_repeat_once() -> None:
    cells = list(plan("a", "b", "c", repeats=2).cells())
    assert len({(one.arm, one.kernel, one.repeat) for one in cells}) == len(cells) == 12
    assert len({one.run for one in cells}) == 12


def test_arms_take_turns_and_each_goes_first_as_often() -> None:
    cells = list(plan("a", "b", repeats=2).cells())
    turns = [cells[place : place + 2] for place in range(0, len(cells), 2)]
    assert all(one.kernel == other.kernel for one, other in turns)
    assert Counter(turn[0].arm for turn in turns) == {"full": 2, "memory_off": 2}


def test_each_kernel_comes_first_in_one_repeat_and_in_one_order_for_all_arms() -> None:
    cells = list(plan("a", "b", "c", repeats=3).cells())
    firsts = {(one.repeat, one.kernel) for one in cells if one.place == 0}
    assert firsts == {(0, "a"), (1, "b"), (2, "c")}
    orders = {
        arm: [(one.repeat, one.kernel) for one in cells if one.arm == arm]
        for arm in ("full", "memory_off")
    }
    assert orders["full"] == orders["memory_off"]


def test_id_of_a_run_says_of_which_study_arm_and_repeat_it_is() -> None:
    first = next(iter(plan().cells()))
    assert first.run == "run-20260101-120000-000-full-r0-k0"


COMMON = load_search_settings().with_beam(2, 1)


def test_each_ablation_takes_away_its_part_and_nothing_else() -> None:
    full, *others = (arm.search for arm in make_arms(list(ABLATIONS), COMMON))
    assert full == COMMON
    assert (full.memory, full.profile, full.agent) == ("on", "detailed", "full")
    memory_off, cycles_only, minimal = others
    assert memory_off == COMMON.model_copy(update={"memory": "off"})
    assert cycles_only == COMMON.model_copy(update={"profile": "cycles_only"})
    assert minimal == COMMON.model_copy(update={"agent": "minimal", "memory": "off"})


def test_arm_of_a_file_differs_from_what_all_have_in_common_only_where_it_says_so(
    tmp_path: Path,
) -> None:
    file = tmp_path / "wide.yaml"
    file.write_text("beam: {width: 6}")
    (arm,) = make_arms([f"wide={file}"], COMMON)
    assert arm.name == "wide"
    assert arm.search.beam.model_dump() == {"width": 6, "refine_rounds": 1}


def test_a_base_of_its_own_makes_an_arm_that_searches_as_full_does() -> None:
    arms = make_arms(["memory_off", "full"], COMMON)
    assert with_bases(arms, ["", "full"], COMMON) == arms
    *others, added = with_bases(arms, ["h100"], COMMON)
    assert (tuple(others), added.name, added.search) == (arms, "h100", COMMON)
    with pytest.raises(ToolError, match="memory_off has no memory"):
        with_bases(arms, ["memory_off"], COMMON)


def test_a_base_for_an_ablation_makes_no_arm_that_searches_otherwise_than_it_is_called() -> None:
    arms = make_arms(["full"], COMMON)
    added = with_bases(arms, ["cycles_only"], COMMON)[-1]
    assert added == make_arms(["cycles_only"], COMMON)[0]
    for name in ("memory_off", "minimal"):
        with pytest.raises(ToolError, match="has no memory"):
            with_bases(arms, [name], COMMON)


def test_a_study_of_before_a_setting_came_is_read_with_the_usual_value() -> None:
    asked = plan()
    kept = json.loads(asked.model_dump_json(by_alias=True))
    for arm in kept["arms"]:
        del arm["search"]["headroom_stop"]
    assert StudyPlan.model_validate_json(json.dumps(kept)) == asked


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["fulll"], "arm 'fulll' is unknown: full, memory_off, cycles_only, minimal, or NAME="),
        (["full", "full"], "the arm full is named twice"),
        (["x=missing.yaml"], "cannot read the search settings missing.yaml"),
        (["Big-One={}"], "arm 'Big-One': up to 20 of a-z, 0-9 and _"),
    ],
)
def test_arm_that_cannot_be_made_is_refused_with_the_reason(
    words: list[str], told: str, tmp_path: Path
) -> None:
    file = tmp_path / "empty.yaml"
    file.write_text("")
    with pytest.raises(ToolError, match=told):
        make_arms([word.format(file) for word in words], COMMON)
