"""The skill: what it names exists, its numbers are kopt's, its form is the one of Agent Skills."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from kopt.server.exits import ExitCode
from kopt.server.skill import MAIN_FILE, SKILL, main_text, skill_files, skill_frontmatter
from kopt.tools.estimate.stage import RESOLUTION
from support.skill_words import command_fault, header_faults, is_true

ROOT = Path(__file__).parents[2]
NAMES = tuple(skill_files())
REFERENCES = tuple(name for name in NAMES if name != MAIN_FILE)
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)]+)\)")
CHARACTERS_PER_TOKEN = 4.0
MAX_TOKENS, MAX_REFERENCE_TOKENS = 2_500, 1_500
FIELDS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}


def text_of(name: str) -> str:
    """Return a file of the skill."""
    return skill_files()[name].decode()


def blocks(name: str, language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return [body for kind, body in _FENCE.findall(text_of(name)) if kind == language]


@pytest.mark.parametrize("name", NAMES)
def test_everything_in_backticks_exists(name: str) -> None:
    spans = _SPAN.findall(_FENCE.sub("", text_of(name)))
    assert spans
    assert [span for span in dict.fromkeys(spans) if not is_true(span)] == []


@pytest.mark.parametrize(
    "span",
    [
        *("check_corectness", "kopt bench FILE --kernal ID", "kopt tune FILE", "--no-model"),
        *("floor_part", "computed.funktions", "docs/candidate.md", "spezialize: [H]"),
        *("specialize: [K]", "kopt export RUN --as triton", "H %% 8", "vectorisation"),
    ],
)
def test_a_word_that_kopt_does_not_have_is_found(span: str) -> None:
    assert not is_true(span)


@pytest.mark.parametrize("name", NAMES)
def test_every_command_of_an_example_can_be_called(name: str) -> None:
    assert {kind for kind, _ in _FENCE.findall(text_of(name))} <= {"sh", "cuda"}
    lines = [line for block in blocks(name, "sh") for line in block.splitlines() if line]
    assert [fault for line in lines if (fault := command_fault(line))] == []


def test_the_header_of_the_example_is_accepted() -> None:
    (header,) = blocks("references/candidates.md", "cuda")
    assert header_faults(header) == []
    assert header_faults(header.replace("ceil_div(H //", "ceil_div(K //")) != []


def test_frontmatter_is_what_the_specification_allows() -> None:
    fields = skill_frontmatter()
    assert {"name", "description"} <= fields.keys() <= FIELDS
    assert fields["name"] == SKILL
    assert re.fullmatch(r"(?!.*--)[a-z0-9][a-z0-9-]{0,62}[a-z0-9]", SKILL)
    assert 1 <= len(fields["description"]) <= 1024
    assert 1 <= len(fields["compatibility"]) <= 500
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert fields["license"] == project["license"]


def test_frontmatter_is_plain_enough_for_readers_that_are_no_yaml_parsers() -> None:
    head = main_text().split("---\n")[1]
    lines = dict(line.split(": ", 1) for line in head.splitlines())
    assert lines == yaml.safe_load(head)


def test_files_are_short_enough_to_be_read_whole() -> None:
    assert len(main_text().splitlines()) < 500
    tokens = {name: len(text_of(name)) / CHARACTERS_PER_TOKEN for name in NAMES}
    assert tokens[MAIN_FILE] < MAX_TOKENS
    assert {name: size for name, size in tokens.items() if size > MAX_REFERENCE_TOKENS} == {
        name: tokens[name] for name in (MAIN_FILE,) if tokens[name] > MAX_REFERENCE_TOKENS
    }


def test_references_are_one_level_deep_and_all_are_linked() -> None:
    assert sorted(set(_LINK.findall(main_text()))) == sorted(REFERENCES)
    assert all(re.fullmatch(r"references/[a-z-]+\.md", name) for name in REFERENCES)
    assert {name: links for name in REFERENCES if (links := _LINK.findall(text_of(name)))} == {}


def test_the_numbers_are_those_of_the_code() -> None:
    search = yaml.safe_load((ROOT / "config/search.yaml").read_text("utf-8"))
    text = main_text()
    assert f"nearer than {100 * RESOLUTION:g} % are a tie" in text
    assert f"`floor_fraction` of `profile` above {search['roofline_stop']}" in text
    gain = f"{100 * search['early_stop_min_improvement']:g} %"
    assert f"within {gain} of `plain_copy_us`" in text and f"less than {gain} measured" in text


def test_the_exit_codes_are_those_of_kopt() -> None:
    told = re.search(r"Exit codes: (.*)\.", text_of("references/command-line.md"))
    assert told is not None
    codes = {int(code) for code in re.findall(r"(?:^|, )(\d+) ", told[1])}
    assert codes == {code.value for code in ExitCode} - {ExitCode.BUG, ExitCode.BROKEN_PIPE}
