"""kopt's device headers without what only its CPU simulator compiles.

Removes the branches of `#if defined(KOPT_SIM)` and `#if !defined(KOPT_SIM)` and the comment that
describes the CPU bodies; a preprocessor condition of another kind stays as it is.
"""

import re

_IF_SIM = "#if defined(KOPT_SIM)"
_IF_NOT_SIM = "#if !defined(KOPT_SIM)"
_CPU_COMMENT = re.compile(
    r"^(?P<before>//.*\S) CPU bod(?:y|ies):.*\n(?:// .*\n)*"  # behind another sentence
    r"|^(?://\n)?// CPU bod(?:y|ies):.*\n(?:// .*\n)*",
    re.MULTILINE,
)


def without_simulator(text: str) -> str:
    """Return `text` as it reads where KOPT_SIM is not defined."""
    kept: list[str] = []
    open_branches: list[_Branch] = []
    for line in text.splitlines():
        word = line.strip()
        if word.startswith("#if"):
            parent = all(branch.is_kept for branch in open_branches)
            open_branches.append(_opened(word))
            if parent and not open_branches[-1].is_sim:
                kept.append(line)
        elif word.startswith(("#elif", "#else", "#endif")):
            written = _continued(line, open_branches)
            if written is not None and all(branch.is_kept for branch in open_branches[:-1]):
                kept.append(written)
            if word.startswith("#endif"):
                open_branches.pop()
        elif all(branch.is_kept for branch in open_branches):
            kept.append(line)
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept) + "\n")
    return _CPU_COMMENT.sub(lambda m: f"{m['before']}\n" if m["before"] else "", text)


class _Branch:
    """One open #if: whether it asks for the simulator, and whether its present part is kept."""

    def __init__(self, is_sim: bool, is_kept: bool) -> None:
        self.is_sim = is_sim
        self.is_kept = is_kept
        self.became_if = False
        """An `#elif` behind the simulator's branch was written as `#if`."""


def _opened(word: str) -> _Branch:
    if word == _IF_SIM:
        return _Branch(is_sim=True, is_kept=False)
    return _Branch(is_sim=word == _IF_NOT_SIM, is_kept=True)


def _continued(line: str, open_branches: list[_Branch]) -> str | None:
    """Return what stands for an #elif, #else or #endif; None for nothing."""
    branch, word = open_branches[-1], line.strip()
    if not branch.is_sim or branch.became_if:
        return line
    if word.startswith("#elif"):
        branch.is_kept = branch.became_if = True
        return line.replace("#elif", "#if", 1)
    if word.startswith("#else"):
        branch.is_kept = not branch.is_kept
    return None
