"""kopt's own code and data below tools/docs: read, and as hashes that tell versions apart."""

import hashlib
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml


def own_data(path: str) -> Any:
    """Return what the YAML file at `path` holds."""
    text = files("kopt.tools.docs").joinpath(path).read_text("utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the latter takes ten times as long
    return yaml.load(text, Loader=loader)


def code_files(*patterns: str) -> list[Path]:
    """Return the modules and data below tools/docs that match any of the glob `patterns`."""
    folder = Path(str(files("kopt.tools.docs")))
    found = {path for pattern in patterns for path in folder.glob(pattern)}
    return sorted(path for path in found if path.suffix in (".py", ".yaml"))


@lru_cache(maxsize=8)
def code_version(*patterns: str) -> str:
    """Return a hash of `code_files(*patterns)` as this process first saw them.

    A process that outlives an upgrade of kopt keeps running its own code: what it writes must not
    pass for an index of the new code.
    """
    contents = (path.read_bytes() for path in code_files(*patterns))
    return hashlib.sha256(b"\0".join(contents)).hexdigest()[:16]
