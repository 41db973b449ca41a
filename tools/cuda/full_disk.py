"""Tells a full disk from a candidate's mistake, by what a compiler said; it measures no disk.

Compilers end with 1 in both cases, and what they wrote is gone when they do, so that the free
space afterwards says nothing.
"""

import re
from pathlib import Path

from kopt.config.errors import SetupError

# The system's own words at the end of a line, after what failed: `fatal error: error writing to
# unit.s: No space left on device`. Quoted source is indented, or numbered as in `  12 | ...`.
_SAID = re.compile(
    r"^\S.*: '?(No space left on device|Disk quota exceeded)'?\s*$", re.IGNORECASE | re.MULTILINE
)
_CANDIDATES_OWN = re.compile(r"#\s*(error|warning|pragma)|static[ _]assert|\bwarning\b")
"""Messages whose words a source chooses."""


def refuse_full_disk(said: str, folder: Path) -> None:
    """Return unless `said`, the output of a failed compiler, blames the disk.

    Args:
        said: All that it printed.
        folder: Where it wrote, its temporary files included.

    Raises:
        SetupError: The disk of `folder` is full, or a quota used up.
    """
    for found in _SAID.finditer(said):
        if not _CANDIDATES_OWN.search(found[0]):
            raise SetupError(
                f"a compiler cannot write to {folder}: {found[1]}; free some space there, or set "
                "KOPT_HOME to a folder on another disk"
            )
