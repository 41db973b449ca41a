"""A command that takes the user on: the last line of a result, or an entry of a report."""

import shlex
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class NextCommand:
    """A command with what it is for."""

    words: tuple[str, ...]
    why: str = ""

    @property
    def shell(self) -> str:
        """The command as a shell takes it."""
        return shlex.join(self.words)

    def line(self, problems: Path | None = None) -> str:
        """Return the last line of a result; what follows the command is a comment of the shell.

        Args:
            problems: The folder that --problems named in the call before.
        """
        words = self.words
        if problems is not None and words[0] == "kopt":
            words = (*words, "--problems", str(problems))
        comment = f"  # {self.why}" if self.why else ""
        return f"Next: {shlex.join(words)}{comment}"
