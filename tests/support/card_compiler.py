"""Every card's example in one file, compiled for a target: which of them it takes and refuses.

`-rdc=true` keeps device functions that nobody calls. ptxas names the line of each instruction that
a target or a PTX version lacks, so that one run tells about all cards; changing the `.target` and
`.version` lines of one PTX file asks about another target in a fraction of a second.
"""

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from kopt.tools.cuda.toolchain import FoundToolchain
from kopt.tools.docs.own.intrinsic_cards import Card

INCLUDED = ("cuda.h", "cuda_bf16.h", "mma.h")
_FRONT_END = re.compile(r"all\.cu\((\d+)\): error: (.*)")
_PTXAS = re.compile(r"line (\d+); error\s*: (.*)")
_OWNER = re.compile(r"^[^/]*\.(?:func|entry)\b.*?_ZN\d+card_(\d+)_")
DEADLINE_S = 300


@dataclass(frozen=True)
class Compiled:
    """What the front end made of the examples for one target."""

    ptx: str
    refused: Mapping[str, str]
    """Cards that the front end refused, with its first words about each."""

    def of(self, cards: Sequence[Card], name: str) -> str:
        """Return the PTX of one card's functions."""
        number = [card.name for card in cards].index(name)
        own = [at == number for at in _owners(self.ptx)]
        lines = self.ptx.split("\n")
        return "\n".join(line for line, is_own in zip(lines, own, strict=True) if is_own)


def compile_cards(
    cards: Sequence[Card], target: str, toolchain: FoundToolchain, folder: Path
) -> Compiled:
    """Compile all examples to PTX for `target`; what the front end refuses is left out."""
    refused: dict[str, str] = {}
    log = ""
    folder.mkdir(parents=True)
    for _ in range(3):  # errors hide others: once more without the refused cards
        text, owners = _source(cards, refused)
        source, output = folder / "all.cu", folder / "all.ptx"
        source.write_text(text, "utf-8")
        words = [str(toolchain.nvcc), "-ptx", "-rdc=true", "-std=c++17", "-w", f"-arch={target}"]
        log = _log([*words, str(source), "-o", str(output)])
        errors = [(owners[int(line)], said) for line, said in _FRONT_END.findall(log)]
        if not errors:  # ptxas has its say in `refusals`
            return Compiled(output.read_text("utf-8"), refused)
        refused |= dict(reversed(errors))
    raise AssertionError(f"the front end still refuses cards for {target}: {log}")


def refusals(
    cards: Sequence[Card], ptx: str, toolchain: FoundToolchain, target: str, version: str | None
) -> dict[str, str]:
    """Return the cards that ptxas refuses for `target` in PTX `version`, with its first reason."""
    text = re.sub(r"(?m)^\.target .*", f".target {target}", ptx)
    if version:
        text = re.sub(r"(?m)^\.version .*", f".version {version}", text)
    found: dict[str, str] = {}
    while True:  # errors of syntax hide others: again without the refused cards
        owners = _owners(text)
        log = _assemble(text, toolchain, target)
        if "does not support .target" in log:  # the version is older than the target
            return {card.name: log for card in cards}
        new: dict[int, str] = {}
        for line, said in _PTXAS.findall(log):
            owner = owners[int(line) - 1]
            assert owner is not None, f"{target}, PTX {version}: {said}"
            new.setdefault(owner, said)
        assert bool(new) == bool(log), log
        found |= {cards[owner].name: said for owner, said in new.items()}
        if not new:
            return found
        kept = zip(text.split("\n"), owners, strict=True)
        text = "\n".join(line for line, owner in kept if owner not in new)


def _assemble(text: str, toolchain: FoundToolchain, target: str) -> str:
    with NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(text)
        file.flush()
        ptxas = str(toolchain.nvcc.with_name("ptxas"))
        return _log([ptxas, f"-arch={target}", "-O0", "-o", "/dev/null", file.name])


def _source(cards: Sequence[Card], left_out: Mapping[str, str]) -> tuple[str, dict[int, str]]:
    """Return one file with each example in a namespace, and the card of each of its lines."""
    kept = [(at, card) for at, card in enumerate(cards) if card.name not in left_out]
    headers = {card.header for _, card in kept if card.header} | set(INCLUDED)
    lines = [f"#include <{header}>" for header in sorted(headers)]
    owners: dict[int, str] = {}
    for at, card in kept:
        for line in (f"namespace card_{at}_ {{", *card.example.rstrip().split("\n"), "}"):
            lines.append(line)
            owners[len(lines)] = card.name
    return "\n".join(lines) + "\n", owners


def _owners(ptx: str) -> list[int | None]:
    """Return the number of the card that each line belongs to."""
    owners: list[int | None] = []
    owner = None
    for line in ptx.split("\n"):
        if match := _OWNER.match(line):
            owner = int(match[1])
        owners.append(owner)
    return owners


def _log(words: Sequence[str]) -> str:
    run = subprocess.run(words, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    return run.stderr if run.returncode else ""
