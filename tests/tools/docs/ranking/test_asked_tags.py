"""The tags that a question speaks of in other words than code has."""

from importlib.resources import files

import pytest
import yaml

from kopt.tools.docs.words.tags import asked_tags


@pytest.mark.parametrize(
    ("question", "tag"),
    [
        (
            "start before the previous kernel has finished",
            "programmatic dependent launch PDL",
        ),
        (
            "fetch an operand once for the CTAs of a cluster",
            "TMA multicast to a cluster",
        ),
        (
            "what is read once must not evict the rest of L2",
            "non-temporal streaming load, cache hints",
        ),
        ("give registers to the other warp group", "ping-pong schedule of two consumer warpgroups"),
        ("scales that are powers of two", "MX microscaling UE8M0 scales"),
        ("stores of 16-byte vectors", "128-bit vectorized load and store"),
    ],
)
def test_a_goal_asks_for_the_tag_of_its_technique(question: str, tag: str) -> None:
    assert tag in asked_tags(question)


def test_words_are_asked_for_in_any_order_and_form() -> None:
    assert asked_tags("latency of global memory, hidden") == asked_tags(
        "hide global memory latency"
    )
    assert asked_tags("hide global memory latency")


def test_half_an_ask_asks_for_nothing() -> None:
    assert asked_tags("latency") == ()


def test_joined_words_must_stand_together() -> None:
    tag = "tensor memory TMEM allocation and load"
    assert tag in asked_tags("free tensor memory")
    assert tag not in asked_tags("tensor in shared memory")


def test_every_tag_that_can_be_asked_for_is_one_that_code_is_given() -> None:
    tags = yaml.safe_load(files("kopt.tools.docs.words").joinpath("tags.yaml").read_text("utf-8"))
    given = {tag for part in ("name", "text") for family in tags[part].values() for tag in family}
    asks = yaml.safe_load(files("kopt.tools.docs.words").joinpath("asks.yaml").read_text("utf-8"))
    assert set(asks) <= given
