"""What a round teaches: from a good answer, or the bare results where there is none."""

import json
from pathlib import Path
from typing import Any

import pytest

from kopt.search.agents.plans import Lesson, Reflection
from kopt.search.agents.reflector import reflect
from kopt.search.models.errors import CallFailed
from kopt.search.models.model import ModelReply
from support.agent_cases import means, round_view
from support.scripted_desk import desk, failure, reply, says

ANSWER: dict[str, Any] = {
    "digest": "Wide loads lead.",
    "lessons": [
        {"candidate": "r1b0", "text": "Wider is faster."},
        {"candidate": "r1b1f1", "text": "Right, and slow."},
        {"candidate": "r9b9", "text": "Who is that?"},
    ],
    "directions": ["more loads in flight"],
    "avoid": ["atomics"],
}


def reflected(home: Path, *script: ModelReply | CallFailed) -> Reflection:
    return reflect(means(desk(*script), home), round_view(round=1, slots=(), reflections=()))


def test_lessons_go_to_the_candidates_that_they_name(tmp_path: Path) -> None:
    found = reflected(tmp_path, says(json.dumps(ANSWER)))
    assert [lesson.candidate for lesson in found.lessons] == [1, 3]
    assert (found.origin, found.digest) == ("model", "Wide loads lead.")


@pytest.mark.parametrize(
    "script",
    [
        (says("Great round!"), says(json.dumps({**ANSWER, "score": 10}))),
        (reply("refusal", refusal="no"),),
        (failure("us"),),
    ],
)
def test_without_a_usable_answer_the_results_speak(
    tmp_path: Path, script: tuple[ModelReply | CallFailed, ...]
) -> None:
    found = reflected(tmp_path, *script)
    assert found.origin == "fallback" and found.why
    assert found.digest == "2 of 3 candidates of round 1 passed."
    assert found.lessons[1] == Lesson(candidate=2, text="incorrect: row 3 is wrong")


def test_long_texts_and_lists_are_cut(tmp_path: Path) -> None:
    wild = {**ANSWER, "digest": "d" * 9_000, "avoid": ["a" * 9_000] * 90}
    found = reflected(tmp_path, says(json.dumps(wild)))
    assert len(found.digest) < 1_100 and len(found.avoid) == 12 and len(found.avoid[0]) < 1_100
