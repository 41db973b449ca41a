"""Files of a checkout read with limits: what is wrong with one is a fault of its task alone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAX_BYTES = 4 << 20
"""No task's text is larger."""


def read_text(path: Path) -> tuple[str, str]:
    """Return the text of a file, and why it cannot be taken; one of them is empty."""
    try:
        if not path.is_file():
            return "", f"{path.name} is missing or no regular file"
        size = path.stat().st_size
        if size > MAX_BYTES:
            return "", f"{path.name} has {size} bytes; {MAX_BYTES} are allowed"
        return path.read_text("utf-8"), ""
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        return "", f"cannot read {path.name}: {said}"


def json_lines(text: str) -> Iterator[Any]:
    """Yield the document of each line that is JSON."""
    for line in filter(str.strip, text.splitlines()):
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):  # the second for brackets without end
            continue
