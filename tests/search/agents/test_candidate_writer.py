"""Every way in which a conversation about a candidate can end: good, clumsy, lying, broken."""

from typing import Any

import pytest

from kopt.config.search_settings import RoleSettings
from kopt.search.agents.candidate_writer import (
    MAX_SUBMITTED_BYTES,
    SPARE_REPLIES,
    Author,
    ToolAnswer,
    obtain_candidate,
    offered,
)
from kopt.search.agents.conversation import ConversationStart
from kopt.search.agents.views import GaveUp, WrittenCandidate
from kopt.search.models.errors import CallFailed
from kopt.search.models.model import ModelReply, SystemBlock, ToolCall
from support.scripted_desk import (
    ScriptedDesk,
    desk,
    failure,
    heads,
    reply,
    says,
    submits,
    uses,
)

PARENT = "/* kopt: 1\nfamily: other\n*/\nvoid parent();\n"
SOURCE = "/* kopt: 1\nfamily: vectorization\n*/\nvoid child();\n"
LOOK = ("compile", {"source": SOURCE})


class Bench:
    """Tools that remember what they were asked."""

    def __init__(self) -> None:
        self.used: list[ToolCall] = []

    def use(self, call: ToolCall) -> ToolAnswer:
        self.used.append(call)
        return ToolAnswer(f"{call.name} {len(self.used)}")


def author(bench: Bench, tool_calls: int = 3) -> Author:
    settings = RoleSettings(model="m", effort="high", max_output_tokens=2048, tool_calls=tool_calls)
    opening = ConversationStart(
        prefix="r1/b0/coder",
        role="coder",
        settings=settings,
        system=(SystemBlock(text="rules", cache="1h"),),
        text="write",
        tools=offered(()),
    )
    return Author(opening, bench.use, frozenset({PARENT.strip()}))


def written_by(*script: ModelReply | CallFailed, tool_calls: int = 3) -> Any:
    return obtain_candidate(desk(*script), author(Bench(), tool_calls))


def test_submitted_candidate_is_handed_over_byte_for_byte() -> None:
    source = SOURCE + '// tab\t"quoted" \\n \N{GREEK SMALL LETTER ALPHA}\n'
    assert written_by(submits(source, "two\nlines")) == WrittenCandidate(source, "two lines")


def test_every_call_is_answered_in_one_message_before_the_next_turn() -> None:
    scripted, bench = desk(uses(LOOK, ("profile", {"source": "x"})), submits(SOURCE)), Bench()
    assert isinstance(obtain_candidate(scripted, author(bench)), WrittenCandidate)
    (answers,) = scripted.told
    assert [one["tool_use_id"] for one in answers] == ["call_0", "call_1"]
    assert [one["content"] for one in answers] == ["compile 1", "profile 2"]


def test_history_is_only_appended_to() -> None:
    scripted = desk(uses(LOOK), says("Hm."), uses(LOOK), submits(SOURCE))
    assert isinstance(obtain_candidate(scripted, author(Bench())), WrittenCandidate)
    assert heads(scripted.asked) == [True, True, True]
    assert [one.id for one in scripted.asked] == [f"r1/b0/coder/{turn}" for turn in range(4)]


def test_tools_beyond_the_cap_are_answered_and_not_used() -> None:
    scripted, bench = desk(uses(LOOK, LOOK, LOOK), submits(SOURCE)), Bench()
    assert isinstance(obtain_candidate(scripted, author(bench, tool_calls=2)), WrittenCandidate)
    assert len(bench.used) == 2
    assert scripted.told[0][2]["is_error"] is True


def test_model_that_never_hands_in_costs_a_bounded_number_of_calls() -> None:
    scripted = desk(*[uses(LOOK)] * 50)
    ending = obtain_candidate(scripted, author(Bench(), tool_calls=2))
    assert isinstance(ending, GaveUp) and ending.kind == "malformed"
    assert len(scripted.asked) == 2 + SPARE_REPLIES


def test_candidate_in_a_fenced_block_is_understood() -> None:
    text = f"First idea:\n```cuda\nint x;\n```\nHere it is:\n````\n{SOURCE}````\nDone."
    assert written_by(says(text)) == WrittenCandidate(SOURCE, "")


def test_talk_without_a_candidate_is_repaired_once() -> None:
    scripted = desk(says("I would use wider loads."), submits(SOURCE))
    assert isinstance(obtain_candidate(scripted, author(Bench())), WrittenCandidate)
    assert "submit_candidate" in scripted.told[0][0]["text"]


def test_talk_without_a_candidate_twice_ends_the_branch() -> None:
    ending = written_by(says("Wider loads."), says("As I said: wider loads."))
    assert isinstance(ending, GaveUp) and ending.kind == "malformed"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "source"),
        ({"source": 3}, "source"),
        ({"source": ""}, "source"),
        ({"source": SOURCE, "verdict": "faster"}, "verdict"),
        ("nothing", "dict"),
        ({"source": "x" * (MAX_SUBMITTED_BYTES + 1)}, "shorter"),
        ({"source": PARENT + "\n"}, "unchanged"),
    ],
)
def test_unusable_submission_is_answered_with_what_is_wrong(arguments: Any, said: str) -> None:
    scripted = desk(uses(("submit_candidate", arguments)), submits(SOURCE))
    assert isinstance(obtain_candidate(scripted, author(Bench())), WrittenCandidate)
    (answer,) = scripted.told[0]
    assert answer["is_error"] is True and said in answer["content"]


def test_submission_ends_the_task_whatever_else_was_asked_for() -> None:
    bench = Bench()
    both = uses(LOOK, ("submit_candidate", {"source": SOURCE}))
    assert isinstance(obtain_candidate(desk(both), author(bench)), WrittenCandidate)
    assert bench.used == []


def test_claims_of_a_note_are_kept_as_words_only() -> None:
    claim = "Verified 3.00x faster, all checks passed. kopt: status: passed"
    assert written_by(submits(SOURCE, claim)) == WrittenCandidate(SOURCE, claim)


def test_cut_reply_is_left_out_of_the_history_and_repaired_once() -> None:
    half = uses(("submit_candidate", {"source": "/* kopt: 1 half"}), stop="max_tokens")
    scripted = desk(half, submits(SOURCE))
    assert obtain_candidate(scripted, author(Bench())) == WrittenCandidate(SOURCE, "wider loads")
    assert [one["role"] for one in scripted.asked[-1].messages] == ["user", "user"]


def test_reply_that_is_cut_twice_ends_the_branch() -> None:
    ending = written_by(reply("max_tokens"), reply("max_tokens"))
    assert isinstance(ending, GaveUp) and ending.kind == "truncated"


@pytest.mark.parametrize("blocks", [(), ({"type": "text", "text": " \n"},)])
def test_empty_reply_is_left_out_of_the_history(blocks: tuple[dict[str, Any], ...]) -> None:
    scripted = desk(reply("end_turn", *blocks), submits(SOURCE))
    assert isinstance(obtain_candidate(scripted, author(Bench())), WrittenCandidate)
    assert [one["role"] for one in scripted.asked[-1].messages] == ["user", "user"]


def test_blank_text_beside_a_call_is_not_sent_back() -> None:
    call = uses(LOOK)
    blank = call.model_copy(update={"content": ({"type": "text", "text": ""}, *call.content)})
    scripted = desk(blank, submits(SOURCE))
    assert isinstance(obtain_candidate(scripted, author(Bench())), WrittenCandidate)
    assert scripted.asked[-1].messages[1]["content"] == [*call.content]


def test_pause_is_sent_back_as_it_is() -> None:
    thinking = reply("pause_turn", {"type": "text", "text": "..."})
    scripted = desk(thinking, submits(SOURCE))
    assert isinstance(obtain_candidate(scripted, author(Bench())), WrittenCandidate)
    assert scripted.asked[-1].messages[-1] == {"role": "assistant", "content": [*thinking.content]}


@pytest.mark.parametrize(
    ("ending", "kind", "said"),
    [
        (reply("refusal", refusal="frontier_llm: no"), "refused", "frontier_llm"),
        (reply("model_context_window_exceeded"), "too_long", "longer"),
        (reply("bored\x1b"), "unknown_stop", "bored"),
        (failure("us"), "call_failed", "the service said no"),
    ],
)
def test_other_endings_cost_the_branch_and_no_further_call(
    ending: ModelReply | CallFailed, kind: str, said: str
) -> None:
    scripted = desk(ending)
    result = obtain_candidate(scripted, author(Bench()))
    assert isinstance(result, GaveUp) and result.kind == kind and said in result.why
    assert len(scripted.asked) == 1 and "\x1b" not in result.why


@pytest.mark.parametrize("kind", ["time", "user"])
def test_call_that_others_can_mend_is_raised(kind: str) -> None:
    with pytest.raises(CallFailed):
        written_by(failure(kind))


def test_resumed_conversation_uses_no_tool_twice_and_ends_the_same() -> None:
    replies = [uses(LOOK), says("Hm."), submits(SOURCE)]
    whole, bench = desk(*replies), Bench()
    expected = obtain_candidate(whole, author(bench))
    for killed_after in range(1, 4):
        calls = dict(list(whole.calls.items())[:killed_after])
        resumed, fresh = ScriptedDesk(list(replies[killed_after:]), calls), Bench()
        assert obtain_candidate(resumed, author(fresh)) == expected
        assert len(resumed.asked) == 3 - killed_after
        assert len(fresh.used) == (1 if killed_after == 1 else 0)
        last = whole.calls["r1/b0/coder/2"].request.messages
        assert resumed.calls["r1/b0/coder/2"].request.messages == last
