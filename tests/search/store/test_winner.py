"""Editing the winning values into the header."""

import pytest

from kopt.search.store.winner import claim, pin_tune

FLOW = "/* kopt: 1\ntune: {AAA: [1, 2, 3], BBB: [7, 8]} # kept\nlaunch: []\n*/\nint a[] = {1, 2};\n"
BLOCK = "/* kopt: 1\ntune:\n  AAA:\n    - 1   # slow\n    - 2\n  BBB: [10,\n        2]\n*/\n"


def test_winning_value_changes_places_with_the_default_and_nothing_else_moves() -> None:
    pinned = pin_tune(FLOW, {"AAA": 3, "BBB": 8})
    assert pinned == FLOW.replace("[1, 2, 3]", "[3, 2, 1]").replace("[7, 8]", "[8, 7]")


def test_block_style_keeps_its_layout_and_comments() -> None:
    pinned = pin_tune(BLOCK, {"AAA": 2, "BBB": 2})
    assert "    - 2   # slow\n    - 1\n" in pinned
    assert "[2,\n        10]" in pinned


def test_defaults_that_won_leave_the_file_as_it_is() -> None:
    assert pin_tune(FLOW, {"AAA": 1, "BBB": 7}) == FLOW
    assert pin_tune(FLOW, {}) == FLOW


def test_text_before_the_header_s_end_may_be_any_unicode() -> None:
    source = "/* kopt: 1\nnote: µs → ns\ntune: {AAA: [1, 2]}\n*/"
    assert pin_tune(source, {"AAA": 2}).endswith("tune: {AAA: [2, 1]}\n*/")


@pytest.mark.parametrize("tune", [{"AAA": 9}, {"CCC": 1}])
def test_undeclared_value_is_refused(tune: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="does not declare"):
        pin_tune(FLOW, tune)


@pytest.mark.parametrize(
    ("header", "claimed"),
    [
        ("kopt: 1 # old\nlaunch: []\n", 'kopt: 1\nwhere: "B <= 8" # old\nlaunch: []\n'),
        ("kopt: 1\n? launch\n: []\n", 'kopt: 1\nwhere: "B <= 8"\n? launch\n: []\n'),
        (
            "kopt: 1\nwhere: H > 2 # old\nlaunch: []\n",
            'kopt: 1\nwhere: "B <= 8" # old\nlaunch: []\n',
        ),
        (
            "kopt: 1\nwhere: >-\n  H > 2\n  and B > 1\nlaunch: []\n",
            'kopt: 1\nwhere: "B <= 8"\nlaunch: []\n',
        ),
    ],
    ids=["without", "explicit key", "with", "folded"],
)
def test_claim_changes_where_and_nothing_else(header: str, claimed: str) -> None:
    code = "\nint launch[] = {1}; // where: true\n"
    assert claim(f"/* {header}*/{code}", "B <= 8") == f"/* {claimed}*/{code}"
