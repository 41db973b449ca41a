"""The owner of a run's folder: the caller of a server that began it, as a file in it.

A file of its own, so that whose it is can be told although the run's database is damaged. A folder
without one is the local owner's: the user's whose KOPT_HOME it lies in.
"""

from pathlib import Path

from .files import write_atomically

LOCAL_OWNER = ""
"""The user who runs kopt: what command line, stdio and loopback begin is theirs, and they see
everything."""
_FILE_NAME = "owner"
_MAX_CHARACTERS = 200


def write_owner(folder: Path, owner: str) -> None:
    """Note whose `folder` is, before anything is in it that others might see."""
    if owner != LOCAL_OWNER:
        write_atomically(folder / _FILE_NAME, owner)


def may_see(owner: str, folder: Path) -> bool:
    """Return whether `folder` is of `owner`, or the local owner asks."""
    if owner == LOCAL_OWNER:
        return True
    try:
        text = (folder / _FILE_NAME).read_text("ascii", errors="replace")
    except OSError:
        return False
    return text[:_MAX_CHARACTERS] == owner
