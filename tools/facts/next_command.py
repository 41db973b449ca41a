"""A command that takes the user on: the last line of a result, or an entry of a report."""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class NextCommand:
    """A command with what it is for."""

    words: tuple[str, ...]
    why: str = ""
    into: str = ""
    """The file that its output goes to; empty: none."""

    @property
    def shell(self) -> str:
        """The command as a shell takes it."""
        return shlex.join(self.words) + (f" > {shlex.quote(self.into)}" if self.into else "")

    def on(self, problems: Path | str | None) -> "NextCommand":
        """Return the command for problems of the user's own, if it is one of kopt's.

        Args:
            problems: Their folder; None changes nothing, nor does it where one is named already.
        """
        if problems is None or self.words[0] != "kopt" or "--problems" in self.words:
            return self
        return replace(self, words=(*self.words, "--problems", str(problems)))

    def by(self, program: str) -> "NextCommand":
        """Return the command, if it is one of kopt's, with what a shell finds kopt by."""
        return replace(self, words=(program, *self.words[1:])) if self.words[0] == "kopt" else self

    def line(self, problems: Path | None = None, program: str = "kopt", label: str = "Next") -> str:
        """Return the last line of a result; what follows the command is a comment of the shell.

        Args:
            problems: The folder that --problems named in the call before.
            program: What a shell finds kopt by.
            label: The word before the command: one of a result's commands is `Next`.
        """
        comment = f"  # {self.why}" if self.why else ""
        return f"{label}: {self.on(problems).by(program).shell}{comment}"
