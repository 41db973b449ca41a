"""Lines of the candidate for addresses in its CPU program, by addr2line."""

import subprocess
from collections.abc import Iterable

from kopt.config.settings import without_secrets

from .unit import UNIT_NAME

_MOST_S = 20.0


def source_lines(executable: str, returns: Iterable[int]) -> dict[int, int]:
    """Return the candidate's line of the call before each return address.

    Of code that was inlined it is the innermost line of the candidate's own. Addresses without one
    are left out, and all of them where addr2line is missing or does not end.
    """
    asked = "".join(f"{address - 1:#x}\n" for address in returns)
    try:
        done = subprocess.run(
            ["addr2line", "-a", "-i", "-e", executable],
            input=asked,
            env=without_secrets(),
            capture_output=True,
            text=True,
            check=False,
            timeout=_MOST_S,
        )
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return {}
    found: dict[int, int] = {}
    address = 0
    for text in done.stdout.splitlines():
        if text.startswith("0x"):
            address = int(text, 16) + 1
        elif address not in found:
            name, _, number = text.rpartition(":")
            digits = number.split()[0] if number.split() else ""
            if name.rsplit("/", 1)[-1] == UNIT_NAME and digits.isdigit() and int(digits):
                found[address] = int(digits)
    return found
