"""The bound of a prompt's tokens counts every byte that is sent."""

from typing import Any

import pytest

from kopt.search.models.model import ModelRequest, SystemBlock, Usage
from kopt.search.models.prompt_bound import SERVICE_TOKENS, bound_next_turn, bound_prompt
from support.model_requests import COMPILE, ask_for, say


def said(text: str) -> ModelRequest:
    return ask_for(messages=({"role": "user", "content": text},))


@pytest.mark.parametrize("text", ["a" * 1000, "\n" * 1000, "\u4f60" * 1000, "\U0001f600" * 1000])
def test_a_text_counts_with_all_its_bytes(text: str) -> None:
    more = bound_prompt(said(text)).tokens - bound_prompt(said("")).tokens
    assert len(text.encode()) <= more <= 2 * len(text.encode())


def test_every_part_of_a_request_counts() -> None:
    plain = bound_prompt(ask_for()).tokens
    assert plain > SERVICE_TOKENS
    messages = (*ask_for().messages, {"role": "user", "content": [{"text": "x" * 500}]})
    for longer in (
        ask_for(system=(SystemBlock(text="x" * 500),)),
        ask_for(tools=(COMPILE.model_copy(update={"description": "x" * 500}),)),
        ask_for(answer_schema={"description": "x" * 500}),
        ask_for(messages=messages),
    ):
        assert bound_prompt(longer).tokens >= plain + 470


def test_only_what_may_be_kept_for_an_hour_counts_as_that() -> None:
    blocks = (SystemBlock(text="a" * 300, cache="1h"), SystemBlock(text="b" * 700, cache="5m"))
    marked = bound_prompt(ask_for(system=blocks, tools=(COMPILE,)))
    assert 300 < marked.hour_tokens < 500
    unmarked = tuple(block.model_copy(update={"cache": "5m"}) for block in blocks)
    assert bound_prompt(ask_for(system=unmarked, tools=(COMPILE,))).hour_tokens == 0


def test_likely_size_is_a_fraction_of_the_bound() -> None:
    bound = bound_prompt(said("x" * 9000))
    assert 3000 < bound.likely_tokens < bound.tokens / 2


BEFORE = ask_for(
    system=(SystemBlock(text="s" * 30_000, cache="1h"),),
    tools=(COMPILE,),
    messages=({"role": "user", "content": "m" * 30_000},),
)
REPLY = say("r" * 9000, usage=Usage(cache_write_1h_tokens=20_000, output_tokens=3000))
ANSWERED = (*BEFORE.messages, {"role": "assistant", "content": list(REPLY.content)})


def next_turn(*new: dict[str, str], **changes: Any) -> ModelRequest:
    return BEFORE.model_copy(update={"messages": (*ANSWERED, *new), **changes})


def test_next_turn_counts_what_was_counted_and_the_bytes_of_what_is_new() -> None:
    request = next_turn({"role": "user", "content": "n" * 5000})
    bound = bound_next_turn(request, BEFORE, REPLY)
    assert 23_000 + 5000 < bound.tokens < 23_000 + 5200 + SERVICE_TOKENS
    assert bound.tokens < bound_prompt(request).tokens / 2
    assert bound.hour_tokens == bound.tokens  # all of it may have to be written for an hour again


def test_next_turn_is_never_bounded_by_more_than_its_bytes() -> None:
    many = REPLY.model_copy(update={"usage": Usage(input_tokens=10**6)})
    request = next_turn({"role": "user", "content": "n"})
    assert bound_next_turn(request, BEFORE, many).tokens == bound_prompt(request).tokens


@pytest.mark.parametrize(
    "request_",
    [
        BEFORE,
        BEFORE.model_copy(update={"messages": ({"role": "user", "content": "another"},) * 3}),
        next_turn(model="claude-sonnet-5-5"),
        next_turn(system=(SystemBlock(text="s" * 30_001, cache="1h"),)),
        next_turn(tools=()),
        next_turn(answer_schema={"type": "object"}),
    ],
)
def test_what_does_not_go_on_from_there_is_bounded_by_its_bytes(request_: ModelRequest) -> None:
    assert bound_next_turn(request_, BEFORE, REPLY) == bound_prompt(request_)
