"""Which library index a namespace holds: a name that every machine gives to the same library."""

import hashlib
import sqlite3
from contextlib import closing
from functools import lru_cache
from pathlib import Path

from kopt.config.settings import Settings
from kopt.tools.docs.index_file import meta_of, open_index
from kopt.tools.docs.library.pins import KNOWN_LIBRARIES
from kopt.tools.docs.library_index.kept_index import sources_in
from kopt.tools.docs.library_index.place import library_index_path

PUBLIC_SOURCES = frozenset(
    key
    for key, library in KNOWN_LIBRARIES.items()
    if library.license is not None and not library.license.startswith("LicenseRef-")
)
"""Those under an open licence. CUDA's own headers may not be handed on, and folders of the user
are sent to a service only where the user names them."""


def namespace_of(settings: Settings) -> str | None:
    """Return the namespace of the library index of this machine; None if there is none.

    It follows from the open libraries in it, their versions and their functions, so that one
    upload serves all machines that have built the same.
    """
    path = library_index_path(settings)
    try:
        state = path.stat()
    except FileNotFoundError:
        return None
    return _namespace(path, state.st_mtime_ns, state.st_ino)


@lru_cache(maxsize=4)
def _namespace(path: Path, *_state: int) -> str | None:
    try:
        with closing(open_index(path, {})) as connection:
            sources = sources_in(meta_of(connection))
            rows = connection.execute("select uid, source from chunk order by uid").fetchall()
    except sqlite3.Error:
        return None
    digest = hashlib.sha256()
    for source in sources:
        if source.source in PUBLIC_SOURCES:
            digest.update(f"{source.source} {source.version}\n".encode())
    for uid, key in rows:
        if key in PUBLIC_SOURCES:
            digest.update(f"{uid}\n".encode())
    return f"kopt-{digest.hexdigest()[:16]}"
