"""Cards of intrinsics and PTX instructions: `intrinsics/*.yaml`, a list of mappings a topic.

A card's `targets` and `ptx` are what ptxas takes and refuses, its `native` what the compiler makes
one instruction of: tests/tools/docs/own/test_intrinsic_facts.py compiles every example. `sm_90+` is
sm_90 and all after it, anything else a list of targets; `sm_75+`, CUDA 13's first, is every one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

DOCUMENTS = {
    "PTX ISA": "https://docs.nvidia.com/cuda/parallel-thread-execution/",
    "CUDA Programming Guide": "https://docs.nvidia.com/cuda/cuda-programming-guide/",
    "CUDA Math API": "https://docs.nvidia.com/cuda/cuda-math-api/",
    "CUDA Driver API": "https://docs.nvidia.com/cuda/cuda-driver-api/",
    "libcu++": "https://nvidia.github.io/cccl/libcudacxx/",
}
"""Documents that a source may begin with, and their addresses."""
ALL_TARGETS = "sm_75+"


@dataclass(frozen=True)
class Card:
    """One intrinsic or instruction."""

    name: str
    what: str
    """One sentence."""
    form: str
    """Signature or PTX syntax."""
    targets: str
    rules: str
    """Order, alignment, rounding, ranges."""
    pitfall: str
    example: str
    """Device code that compiles as it stands, with `header` included."""
    source: str
    """Document of `DOCUMENTS`, then the section."""
    header: str | None = None
    """Header to include; None for what is built in."""
    ptx: str | None = None
    """First PTX ISA version that has it on the first of its targets; None for C++ functions."""
    native: str | None = None
    """Targets whose hardware has it; None where that is no question."""
    emits: str | None = None
    """Text of the PTX that shows it."""
    start_line: int = 1
    end_line: int = 1

    @property
    def symbol(self) -> str:
        """The bare name of `cp.async with a cache policy`; the whole of a name in plain words."""
        first = self.name.split(" ")[0]
        return first if any(mark in first for mark in "._%") else self.name

    @property
    def text(self) -> str:
        """The card as it is quoted."""
        where = [f"Targets: {spelled(self.targets)}"]
        if self.ptx:
            where.append(f"PTX ISA {self.ptx}")
        if self.native:
            where.append(f"hardware: {spelled(self.native)}, software elsewhere")
        document = self.source.split(",")[0]
        lines = (
            f"{self.name}: {self.what}",
            f"Form: {self.form}",
            *([f"Header: {self.header}"] if self.header else []),
            "; ".join(where),
            f"Rules: {self.rules}",
            f"Pitfall: {self.pitfall}",
            self.example.rstrip(),
            f"Source: {self.source} ({DOCUMENTS[document]})",
        )
        return "\n".join(lines)


def spelled(targets: str) -> str:
    """Return `targets` in words."""
    if targets == ALL_TARGETS:
        return "all"
    first, _plus, rest = targets.partition("+")
    return f"{first} and later" if not rest and targets.endswith("+") else f"only {targets}"


def read_cards(text: str) -> Iterator[Card]:
    """Yield the cards of one topic with their lines.

    Raises:
        TypeError: The text is no list, or a card lacks a key or has one that no card has.
        yaml.YAMLError: The text is no YAML.
    """
    topic = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    lines = text.rstrip().split("\n")
    if not isinstance(topic, yaml.SequenceNode):
        raise TypeError("a topic is a list of cards")
    starts = [card.start_mark.line for card in topic.value]
    for card, start, after in zip(topic.value, starts, [*starts[1:], len(lines) + 1], strict=True):
        fields = {key.value: value.value for key, value in card.value}
        yield Card(**fields, start_line=start + 1, end_line=after - 1)
