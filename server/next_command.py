"""The last line of a result on a terminal: a command that takes the user on.

What follows the command is a comment of the shell: the whole line can be pasted.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class NextCommand:
    """A command with what it is for."""

    words: tuple[str, ...]
    why: str = ""

    def line(self, problems: Path | None = None) -> str:
        """Return the line, `problems` being what --problems named in the call before."""
        words = self.words
        if problems is not None and words[0] == "kopt":
            words = (*words, "--problems", str(problems))
        comment = f"  # {self.why}" if self.why else ""
        return f"Next: {shlex.join(words)}{comment}"
