"""From a line of PTX back to the line of the candidate that it was made from."""

import re

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_LOCATION = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s")


def source_line(ptx: str, ptx_line: int, file_name: str) -> int | None:
    """Return the 1-based line of `file_name` that line `ptx_line` of `ptx` stems from.

    `ptx` must have a line table (nvcc -lineinfo). None if the last location before that line is
    in another file, or if there is none.
    """
    files = {number for number, path in _FILE.findall(ptx) if path.rsplit("/", 1)[-1] == file_name}
    for line in reversed(ptx.splitlines()[:ptx_line]):
        location = _LOCATION.match(line)
        if location:
            return int(location.group(2)) if location.group(1) in files else None
    return None
