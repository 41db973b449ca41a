"""Values of environment variables: paths, numbers, lists, and text that goes into requests."""

import os
import pwd
import re
from collections.abc import Mapping
from pathlib import Path

from .errors import ToolError


def seconds(name: str, environment: Mapping[str, str], unset: float = 0.0) -> float:
    """Return a variable that is a number of seconds; `unset` if it is not set, or empty.

    Raises:
        ToolError: It is no number, or negative.
    """
    text = environment.get(name, "").strip()
    if not text:
        return unset
    if not re.fullmatch(r"\d+(\.\d+)?", text):
        raise ToolError(f"{name} is {text!r}; it must be a number of seconds, 0 or more")
    return float(text)


def absolute(text: str) -> Path:
    """Return a path that means the same in every process: workers have another working folder."""
    return Path(text).expanduser().absolute()


def user_home(environment: Mapping[str, str]) -> Path:
    """Return the user's home folder; an empty HOME is none.

    Raises:
        ToolError: There is neither HOME nor an entry of the user in the password database.
    """
    if home := environment.get("HOME"):
        return Path(home)
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        raise ToolError("this user has no home folder: set HOME or KOPT_HOME") from None


def names(text: str) -> tuple[str, ...]:
    """Return the parts of a list with commas, each once."""
    return tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))


def printable(name: str, environment: Mapping[str, str]) -> str | None:
    """Return a variable that becomes part of a request, without blanks around it.

    Raises:
        ToolError: It has what no header or address can carry; the value is not shown.
    """
    text = environment.get(name, "").strip()
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise ToolError(
            f"{name} has characters that do not belong there: blanks, controls, accents"
        )
    return text or None


def optional_path(text: str | None) -> Path | None:
    return absolute(text) if text else None
