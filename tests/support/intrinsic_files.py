"""The cards and notes that ship, read once."""

from functools import cache
from importlib.resources import files
from pathlib import Path

from kopt.tools.docs.own.intrinsic_cards import Card, read_cards

DOCS = Path(str(files("kopt.tools.docs")))


@cache
def cards_of(topic: Path) -> tuple[Card, ...]:
    """Return the cards of one file, in order."""
    return tuple(read_cards(topic.read_text("utf-8")))


def all_cards() -> list[Card]:
    """Return the cards of all topics."""
    return [
        card for topic in sorted((DOCS / "intrinsics").glob("*.yaml")) for card in cards_of(topic)
    ]
