"""Which library index a namespace holds: a name that every machine gives to the same library."""

import hashlib
import sqlite3
from contextlib import closing
from functools import lru_cache
from pathlib import Path

from kopt.config.settings import Settings
from kopt.tools.docs.indexing.index_file import meta_of, open_index
from kopt.tools.docs.library.file_license import may_be_handed_on
from kopt.tools.docs.library.pins import KNOWN_LIBRARIES
from kopt.tools.docs.library_index.kept_index import sources_in
from kopt.tools.docs.library_index.place import library_index_path


def is_public(source: str, license_id: str | None) -> bool:
    """Say whether a chunk is sent unasked: of a known library, and its own licence lets it.

    What is the user's, folders and repositories, is sent only where the user names it.
    """
    return source in KNOWN_LIBRARIES and may_be_handed_on(license_id)


def namespace_of(settings: Settings) -> str | None:
    """Return the namespace of the library index of this machine; None if there is none.

    It follows from what is public in it, the functions and the versions of their libraries, so
    that one upload serves all machines that have built the same.
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
            rows = connection.execute(
                "select uid, source, license from chunk order by uid"
            ).fetchall()
    except (sqlite3.Error, ValueError):  # damaged: the next search heals it
        return None
    public = {uid: key for uid, key, license_id in rows if is_public(key, license_id)}
    keys = set(public.values())
    digest = hashlib.sha256()
    for source in sources:
        if source.source in keys:
            digest.update(f"{source.source} {source.version}\n".encode())
    for uid in public:
        digest.update(f"{uid}\n".encode())
    return f"kopt-{digest.hexdigest()[:16]}"
