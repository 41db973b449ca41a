"""What builds keep from one to the next: the entries of each file, and what the index is made of.

A file of its own for each, whole or not there, so that a killed build goes on where it was and an
unchanged file is never chunked again. Only a build, which holds the lock, changes what is kept.
"""

import json
import shutil
import zlib
from collections.abc import Sequence

from kopt.config.files import ensure_folder, write_atomically
from kopt.config.settings import Settings
from kopt.kernels.record import Record
from kopt.tools.docs.indexing.entries import IndexEntry, terms_version
from kopt.tools.docs.indexing.index_meta import library_folder
from kopt.tools.docs.sources import LibrarySource


class SourceParts(Record):
    """A source and the keys of the parts that it consists of."""

    source: LibrarySource
    keys: tuple[str, ...]


class MadeOf(Record):
    """What the library index was last made of."""

    terms: str = ""
    """`terms_version()` of the parts."""
    sources: tuple[SourceParts, ...] = ()


class PartsDamaged(Exception):
    """A part cannot be read; a build does without what is kept."""


class Parts:
    """The kept parts of one KOPT_HOME, by the key of their file."""

    def __init__(self, settings: Settings) -> None:
        """Read nothing yet."""
        self.folder = library_folder(settings) / "parts"
        self._made_of = library_folder(settings) / "made_of.json"

    def known(self) -> set[str]:
        """Return the keys of all parts."""
        return {path.name for path in self.folder.glob("*")}

    def add(self, key: str, entries: Sequence[IndexEntry]) -> None:
        """Keep the entries of one file; processes may do so at once."""
        rows = [(one.record, one.fields, one.vector.hex()) for one in entries]
        data = zlib.compress(json.dumps(rows).encode())
        write_atomically(ensure_folder(self.folder) / key, data, durable=False)

    def entries(self, key: str) -> list[IndexEntry]:
        """Return the entries of one file in order.

        Raises:
            PartsDamaged: They are not there, or damaged.
        """
        try:
            rows = json.loads(zlib.decompress((self.folder / key).read_bytes()))
            return [IndexEntry(one, fields, bytes.fromhex(vector)) for one, fields, vector in rows]
        except (OSError, ValueError, TypeError, zlib.error) as error:
            raise PartsDamaged(f"the part {key} cannot be read: {error}") from error

    def made_of(self) -> MadeOf:
        """Return what the index was last made of; nothing if that is not known."""
        try:
            return MadeOf.model_validate_json(self._made_of.read_bytes())
        except (OSError, ValueError):
            return MadeOf()

    def sources(self) -> tuple[SourceParts, ...]:
        """Return what the index was last made of, if by this version of kopt."""
        made_of = self.made_of()
        return made_of.sources if made_of.terms == terms_version() else ()

    def settle(self, sources: Sequence[SourceParts]) -> None:
        """Keep `sources` as what the index is made of, and no part that is not of them."""
        made_of = MadeOf(terms=terms_version(), sources=tuple(sources))
        write_atomically(self._made_of, made_of.model_dump_json())
        for key in self.known() - {key for source in sources for key in source.keys}:
            (self.folder / key).unlink()

    def drop(self) -> None:
        """Forget all parts."""
        shutil.rmtree(self.folder, ignore_errors=True)
