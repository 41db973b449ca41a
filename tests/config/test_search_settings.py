"""The settings of the search: what is packaged, what a file changes, what is refused."""

from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest

from kopt.config.errors import ToolError
from kopt.config.search_settings import (
    ROLES,
    Role,
    SearchSettings,
    complete_settings,
    load_search_settings,
)

DEFAULTS = load_search_settings()


def _file(folder: Path, text: str) -> Path:
    path = folder / "search.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_packaged_settings_have_the_published_values() -> None:
    assert (DEFAULTS.beam.width, DEFAULTS.beam.refine_rounds) == (4, 4)
    assert (DEFAULTS.tree_speedup_threshold, DEFAULTS.tree_branching_factor) == (1.0, 2)
    assert (DEFAULTS.diversity_mode, DEFAULTS.population_crossover) == ("family_diverse", True)
    assert (DEFAULTS.early_stop_min_improvement, DEFAULTS.combine_top_k) == (0.03, 2)


@pytest.mark.parametrize(
    ("text", "memory"), [("memory: off", "off"), ("memory: on", "on"), ("memory: 'off'", "off")]
)
def test_memory_is_switched_as_people_write_it(tmp_path: Path, text: str, memory: str) -> None:
    assert load_search_settings(_file(tmp_path, text)).memory == memory


def test_kept_settings_of_an_older_run_are_completed() -> None:
    kept = DEFAULTS.model_dump(mode="json")
    del kept["maic_rl"], kept["roles"]["combiner"]
    kept["beam"]["width"] = 7
    found = SearchSettings.model_validate(complete_settings(kept))
    assert found == DEFAULTS.with_beam(7, None)


def test_settings_survive_being_stored() -> None:
    assert SearchSettings.model_validate_json(DEFAULTS.model_dump_json()) == DEFAULTS


def test_a_file_changes_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    text = "beam: {width: 6}\nretire_trail: 0.8\nroles: {fixer: {model: claude-haiku-5-5}}\n"
    found = load_search_settings(_file(tmp_path, text))
    assert (found.beam.width, found.beam.refine_rounds, found.retire_trail) == (6, 4, 0.8)
    assert found.roles.fixer.model == "claude-haiku-5-5"
    assert found.roles.fixer.effort == DEFAULTS.roles.fixer.effort
    assert found.roles.coder == DEFAULTS.roles.coder


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert load_search_settings(_file(tmp_path, "# nothing yet\n")) == DEFAULTS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("beam: {widht: 6}", "unknown key beam.widht; did you mean beam.width?"),
        ("width: 6", "unknown key width; did you mean beam.width?"),
        ("tree_branching: 3", "did you mean tree_branching_factor?"),
        ("roles: {fixer: {modle: x}}", "unknown key roles.fixer.modle; did you mean roles.fixer."),
        ("roles: {painter: {model: x}}", "unknown key roles.painter; did you mean roles.planner?"),
        ("zzz: 1", "unknown key zzz; the keys are in search.yaml"),
        ("7: 1", "unknown key 7"),
        ("{a: 1}: 4", "line 1: a key is a word, not a list or a mapping"),
        ("beam: {width: 4, ? [a] : 4}", "line 1: a key is a word, not a list or a mapping"),
        ("beam: 4", "beam is 4; it has keys of its own: width, refine_rounds"),
        ("beam: {width: 0}", "beam.width is 0"),
        ("beam: {width: four}", "beam.width is 'four'"),
        ("population_crossover: 1", "population_crossover is 1"),
        ("memory: maybe", "memory is 'maybe': Input should be 'on' or 'off'"),
        ("strategy: climb", "'beam' or 'maic_rl'"),
        ("maic_rl: {most_steps: 3}", "most_steps, 3, is less than steps, 4"),
        ("diversity_mode: random", "'family_diverse' or 'fastest'"),
        ("roles: {coder: {effort: huge}}", "roles.coder.effort is 'huge'"),
        ("roles: {planner: {tool_calls: 3}}", "roles.planner.tool_calls is 3"),
        ("tree_speedup_threshold: .inf", "tree_speedup_threshold is inf"),
        ("beam: {width: 4}\nbeam: {width: 5}", "line 2: beam stands there twice"),
        ("- beam", "write keys with values"),
        ("#" * 70_000, "more than 65536 characters"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ToolError) as caught:
        load_search_settings(_file(tmp_path, text))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "beam: {width: 6\nroles: 1",
            ":2:6: not YAML: expected ',' or '}', but got ':' while parsing a flow mapping\n"
            "    roles: 1\n         ^\n"
            "  hint: a bracket, brace or quote is not closed, or a comma is missing",
        ),
        ("beam:\n\twidth: 6", "\n    \twidth: 6\n    ^\n  hint: indent with spaces, not tabs"),
        ("beam: [\n", ":2:1: not YAML: expected the node content"),
        ("beam: !!python/object:os.system {}", ":1:7: not YAML: could not determine a constructor"),
        ("beam: &a {refine_rounds: *a}", "is no YAML"),
    ],
)
def test_broken_yaml_is_shown_with_its_line_as_compilers_do(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(ToolError) as caught:
        load_search_settings(_file(tmp_path, text))
    assert said in str(caught.value)


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("missing", "binary", "."):
        with pytest.raises(ToolError, match="cannot read the search settings"):
            load_search_settings(tmp_path / name)


def test_command_line_numbers_go_over_the_settings() -> None:
    changed = DEFAULTS.with_beam(8, None)
    assert (changed.beam.width, changed.beam.refine_rounds) == (8, 4)
    assert DEFAULTS.with_beam(None, 0).beam.refine_rounds == 0
    with pytest.raises(ToolError, match=r"beam\.width is 0"):
        DEFAULTS.with_beam(0, None)


@pytest.mark.parametrize(
    ("changes", "sizes"),
    [
        ({}, (14, 12)),
        ({"population_crossover": False}, (12, 12)),
        ({"tree_branching_factor": 0}, (6, 4)),
    ],
)
def test_a_round_has_room_for_refinements_and_children_and_one_of_agents_for_merges(
    changes: dict[str, Any], sizes: tuple[int, int]
) -> None:
    settings = DEFAULTS.model_copy(update=changes)
    assert (settings.round_size, settings.sweep_size) == sizes


def test_every_role_has_settings() -> None:
    assert get_args(Role) == ROLES
    assert {DEFAULTS.roles.of(role).max_output_tokens > 0 for role in ROLES} == {True}


def test_every_key_is_explained() -> None:
    text = (Path(__file__).parents[2] / "config" / "search.yaml").read_text("utf-8")
    for before, line in pairwise(text.splitlines()):
        is_key = line.strip()[:1].isalpha() and line != "beam:" and "{model" not in line
        assert not is_key or before.lstrip().startswith("#"), f"no comment above {line!r}"


def test_model_of_a_client_is_asked_by_its_provider_s_name(tmp_path: Path) -> None:
    text = "models: {provider: claude-code}\nroles: {coder: {model: opus}}"
    found = load_search_settings(_file(tmp_path, text))
    assert found.asked("coder").model == "claude-code:opus"
    assert found.asked("fixer").model == "claude-code:claude-sonnet-5-5"
    assert DEFAULTS.asked("coder") == DEFAULTS.roles.coder


def test_codex_chooses_its_model_where_one_of_claude_stands(tmp_path: Path) -> None:
    text = "models: {provider: codex}\nroles: {coder: {model: gpt-6}}"
    found = load_search_settings(_file(tmp_path, text))
    assert (found.asked("coder").model, found.asked("fixer").model) == (
        "codex:gpt-6",
        "codex:default",
    )
    assert found.by("anthropic").asked("fixer") == DEFAULTS.roles.fixer


def test_provider_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"models\.provider is 'openai'"):
        load_search_settings(_file(tmp_path, "models: {provider: openai}"))


def test_run_that_was_begun_before_there_were_providers_has_claude() -> None:
    kept = DEFAULTS.model_dump()
    del kept["models"]
    assert complete_settings(kept)["models"] == {"provider": "anthropic"}
