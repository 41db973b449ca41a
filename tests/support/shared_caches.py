"""Compile caches that all processes of one test run share: what one has built, the others find.

They hold nothing of any test: entries are found by their content and put in place by one rename.
"""

from pathlib import Path

_SHARED = ("cubin", "oracle", "sandbox", "sim")


def share_caches(home: Path, caches: Path, names: tuple[str, ...] = _SHARED) -> Path:
    """Return `home`, made into a state folder whose compile caches `names` are in `caches`."""
    own = home / "cache"
    own.mkdir(parents=True)
    for name in names:
        (caches / name).mkdir(parents=True, exist_ok=True)
        (own / name).symlink_to(caches / name)
    return home
