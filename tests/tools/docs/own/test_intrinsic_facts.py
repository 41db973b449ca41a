"""What the cards claim about targets and PTX versions is what nvcc and ptxas say."""

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import pytest

from kopt.tools.cuda.toolchain import FoundToolchain
from kopt.tools.docs.own.intrinsic_cards import Card
from support.card_compiler import Compiled, compile_cards, refusals
from support.intrinsic_files import all_cards

pytestmark = pytest.mark.slow  # compiles every intrinsic

ASSEMBLY = [card for card in all_cards() if card.ptx]
FUNCTIONS = [card for card in all_cards() if not card.ptx]
TARGETS = (
    *("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f"),
    *("sm_103a", "sm_103f", "sm_110a", "sm_120", "sm_120a", "sm_120f", "sm_121a"),
)
"""Ascending: a `+` holds for all that follow."""
FUNCTION_TARGETS = ("sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a")
"""Each costs a run of nvcc; together they tell all claims of functions apart."""
each_function_target = pytest.mark.parametrize(
    "target",
    [
        pytest.param(one, marks=[] if one in ("sm_75", "sm_90a") else [pytest.mark.nightly])
        for one in FUNCTION_TARGETS
    ],
)
VERSIONS = (
    *("6.3", "6.4", "6.5", "7.0", "7.1", "7.2", "7.3", "7.4", "7.5", "7.6", "7.7", "7.8"),
    *("8.0", "8.1", "8.2", "8.3", "8.4", "8.5", "8.6", "8.7", "8.8", "9.0"),
)


def _claims(targets: str, target: str) -> bool:
    first = targets.removesuffix("+")
    if targets == first:
        return target in targets.split()
    return TARGETS.index(target) >= TARGETS.index(first)


def _first_target(card: Card) -> str:
    return next(target for target in TARGETS if _claims(card.targets, target))


@pytest.fixture(scope="module")
def assembly(toolchain: FoundToolchain, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The PTX of all cards with inline assembly, to be asked about any target."""
    folder = tmp_path_factory.mktemp("assembly") / "sm_90"
    compiled = compile_cards(ASSEMBLY, "sm_90", toolchain, folder)
    assert not compiled.refused
    return compiled.ptx


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_takes_and_refuses_what_the_cards_say(
    target: str, assembly: str, toolchain: FoundToolchain
) -> None:
    refused = refusals(ASSEMBLY, assembly, toolchain, target, None)
    claimed = {card.name for card in ASSEMBLY if not _claims(card.targets, target)}
    assert set(refused) == claimed, {name: refused.get(name) for name in set(refused) ^ claimed}


@pytest.mark.parametrize("target", sorted({_first_target(card) for card in ASSEMBLY}))
def test_the_ptx_version_of_a_card_is_the_first_that_its_first_target_takes(
    target: str, assembly: str, toolchain: FoundToolchain
) -> None:
    cards = {card.name: card.ptx for card in ASSEMBLY if _first_target(card) == target}
    claimed = {VERSIONS.index(version) for version in cards.values() if version}
    for at in claimed | {at - 1 for at in claimed if at}:
        refused = refusals(ASSEMBLY, assembly, toolchain, target, VERSIONS[at])
        newer = {name for name, version in cards.items() if version not in VERSIONS[: at + 1]}
        assert set(refused) & set(cards) == newer, (
            VERSIONS[at],
            newer ^ (set(refused) & set(cards)),
        )


CompileFor = Callable[[str], Compiled]


@pytest.fixture(scope="module")
def functions_on(toolchain: FoundToolchain, tmp_path_factory: pytest.TempPathFactory) -> CompileFor:
    """Return what compiles the cards of functions for a target, once."""
    folder: Path = tmp_path_factory.mktemp("functions")

    @lru_cache
    def compiled(target: str) -> Compiled:
        return compile_cards(FUNCTIONS, target, toolchain, folder / target)

    return compiled


@each_function_target
def test_a_function_exists_where_its_card_says(
    target: str, functions_on: CompileFor, toolchain: FoundToolchain
) -> None:
    compiled = functions_on(target)
    refused = {
        **refusals(FUNCTIONS, compiled.ptx, toolchain, target, None),
        **compiled.refused,
    }
    claimed = {card.name for card in FUNCTIONS if not _claims(card.targets, target)}
    assert set(refused) == claimed, {name: refused.get(name) for name in set(refused) ^ claimed}


@each_function_target
def test_a_function_is_an_instruction_where_its_card_says(
    target: str, functions_on: CompileFor
) -> None:
    compiled = functions_on(target)
    for card in FUNCTIONS:
        if card.native and card.emits and _claims(card.targets, target):
            is_native = card.emits in compiled.of(FUNCTIONS, card.name)
            assert is_native == _claims(card.native, target), card.name


def test_the_targets_are_in_the_order_of_their_numbers() -> None:
    numbers = [int(target.removeprefix("sm_").rstrip("af")) for target in TARGETS]
    assert all(one <= other for one, other in pairwise(numbers))
