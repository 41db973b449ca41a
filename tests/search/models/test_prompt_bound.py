"""The bound of a prompt's tokens counts every byte that is sent."""

import pytest

from kopt.search.models.model import ModelRequest, SystemBlock
from kopt.search.models.prompt_bound import SERVICE_TOKENS, bound_prompt
from support.model_requests import COMPILE, ask_for


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
