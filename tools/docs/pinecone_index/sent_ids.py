"""Which ids were sent to a namespace from this machine: a file each, so that an upload goes on."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from kopt.config.files import ensure_folder
from kopt.config.settings import Settings

_SUFFIX = ".ids"


def sent_folder(host: str, settings: Settings) -> Path:
    """Return the folder of the namespaces of the index at `host`.

    Raises:
        SetupError: It cannot be written.
    """
    name = hashlib.sha256(host.encode()).hexdigest()[:16]
    return ensure_folder(settings.docs_cache / "pinecone" / name)


def sent_ids(folder: Path, namespace: str) -> frozenset[str]:
    """Return the ids; a line that was cut off in writing is none."""
    try:
        text = (folder / f"{namespace}{_SUFFIX}").read_text(encoding="ascii")
    except FileNotFoundError:
        return frozenset()
    return frozenset(line for line in text.split("\n")[:-1] if line)


def note_sent(folder: Path, namespace: str, ids: Iterable[str]) -> None:
    """Add ids that the service has taken."""
    with (folder / f"{namespace}{_SUFFIX}").open("a", encoding="ascii") as file:
        file.write("".join(f"{id_}\n" for id_ in ids))


def forget(folder: Path, namespace: str) -> None:
    """Drop what is known of a namespace."""
    (folder / f"{namespace}{_SUFFIX}").unlink(missing_ok=True)


def known_namespaces(folder: Path) -> list[str]:
    """Return the namespaces that something was sent to."""
    return sorted(path.name.removesuffix(_SUFFIX) for path in folder.glob(f"*{_SUFFIX}"))
