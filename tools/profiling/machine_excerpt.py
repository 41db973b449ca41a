"""A part of a candidate's machine code: around a source line, or the block that is run most."""

from collections import Counter
from dataclasses import dataclass

from kopt.config.errors import ToolError
from kopt.kernels.profile_result import MachineExcerpt
from kopt.tools.cuda.lined_listing import LinedInstruction, Listing
from kopt.tools.estimate.machine.stage import FollowedPlan

from .launchable import Launchable

HOTTEST = "hot"
MOST_SHOWN = 48
"""Instructions of one excerpt."""
_AROUND = 3
"""Instructions shown before and after those of a line."""
_ENDS_BLOCK = ("BRA", "BRX", "EXIT", "RET", "CALL", "BSYNC", "BREAK")


@dataclass(frozen=True)
class _Part:
    """Which instructions of a function to show."""

    function: str
    about: str
    places: tuple[int, ...]


def refuse_unclear(asked: str) -> None:
    """Return if `asked` is `hot` or the number of a line.

    Raises:
        ToolError: It is neither.
    """
    if asked != HOTTEST and not (asked.isascii() and asked.isdigit() and int(asked) > 0):
        raise ToolError(
            f'sass is {asked[:40]!r}: expected is "hot", the block that is run most, or a line of'
            ' the source, e.g. "31"'
        )


def machine_excerpt(
    launchable: Launchable, asked: str, followed: FollowedPlan, listing: Listing
) -> MachineExcerpt:
    """Return the instructions of a line or of the hottest block, with what they wait for.

    Args:
        launchable: What was compiled.
        asked: `hot`, or the number of a line.
        followed: The ways of warps, which say how often each instruction is run.
        listing: The machine code of its kernels, with lines.

    Raises:
        ToolError: No instruction came of the line.
    """
    kernels = dict.fromkeys(launch.kernel for launch in launchable.plan.launches)
    code = {name: listing[name] for name in kernels if name in listing}
    part = _hottest(code, followed) if asked == HOTTEST else _of_line(code, int(asked))
    shown = part.places[:MOST_SHOWN]
    instructions = code[part.function]
    return MachineExcerpt(
        function=part.function,
        arch=launchable.build.arch,
        about=part.about,
        instructions=len(instructions),
        left_out=len(part.places) - len(shown),
        rows=tuple(_rows(instructions, shown)),
    )


def _rows(instructions: tuple[LinedInstruction, ...], shown: tuple[int, ...]) -> list[str]:
    rows: list[str] = []
    for place, at in enumerate(shown):
        if place and at != shown[place - 1] + 1:
            rows.append("...")
        rows.append(instructions[at].words)
    return rows


def _of_line(code: dict[str, tuple[LinedInstruction, ...]], line: int) -> _Part:
    for function, instructions in code.items():
        own = [at for at, one in enumerate(instructions) if one.line == line]
        if own:
            near = {
                place
                for at in own
                for place in range(max(0, at - _AROUND), min(at + _AROUND + 1, len(instructions)))
            }
            about = f"line {line}: {len(own)} instructions, and {_AROUND} around each"
            return _Part(function, about, tuple(sorted(near)))
    lines = sorted({one.line for every in code.values() for one in every if one.line is not None})
    known = ", ".join(map(str, lines[:60])) or "none: the machine code has no line table"
    raise ToolError(f"no instruction came of line {line}; lines with some: {known}")


def _hottest(code: dict[str, tuple[LinedInstruction, ...]], followed: FollowedPlan) -> _Part:
    """Return the block with the most instructions run, by the ways of the warps of one SM."""
    runs = _runs(followed)
    best: tuple[int, str, list[int]] | None = None
    for function, instructions in code.items():
        counts = runs.get(function, Counter[int]())
        for block in _blocks(instructions):
            weight = sum(counts[instructions[at].address] for at in block)
            if best is None or weight > best[0]:
                best = (weight, function, block)
    if best is None:
        raise ToolError("no machine code is known of the functions that are launched")
    weight, function, block = best
    total = sum(counts.total() for counts in runs.values())
    share = f", {weight / total:.0%} of all that the followed warps run" if total else ""
    return _Part(function, f"hottest block, {len(block)} instructions{share}", tuple(block))


def _runs(followed: FollowedPlan) -> dict[str, Counter[int]]:
    """Return how often each address is run, by function."""
    runs: dict[str, Counter[int]] = {}
    for timed in followed.launches:
        path = timed.path
        counts = runs.setdefault(path.launch.kernel, Counter[int]())
        for block in path.followed.values():
            for warp in block:
                counts.update(path.code[visit.index].address for visit in warp)
    return runs


def _blocks(instructions: tuple[LinedInstruction, ...]) -> list[list[int]]:
    """Return the basic blocks: what ends in a branch, or is branched to, in their order."""
    blocks: list[list[int]] = [[]]
    for at, one in enumerate(instructions):
        if one.is_target and blocks[-1]:
            blocks.append([])
        blocks[-1].append(at)
        if _opcode(one.text).startswith(_ENDS_BLOCK):
            blocks.append([])
    return [block for block in blocks if block]


def _opcode(text: str) -> str:
    return text.partition(" ")[2] if text.startswith("@") else text
