"""The knowledge base of a KOPT_HOME: learned into by any number of runs at once, read as versions.

`samples.sqlite` is the truth; `base.yaml` beside it is rendered after every change, for people.
"""

import hashlib
import logging
import sqlite3
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from kopt.config.errors import ToolError
from kopt.config.files import ensure_folder, write_atomically
from kopt.search.knowledge import ledger_rows as rows
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.editing import changes_nothing, clamped, refusal
from kopt.search.knowledge.edits import Edit
from kopt.search.knowledge.ledger_file import FILE_NAME, guarded, open_ledger
from kopt.search.knowledge.ledger_queries import find_evidence, read_samples
from kopt.search.knowledge.merge import without_origin
from kopt.search.knowledge.projection import extend, project
from kopt.search.knowledge.reading import read_base
from kopt.search.knowledge.records import Sample
from kopt.search.knowledge.rendering import render_complete, render_small
from kopt.search.knowledge.seed_base import load_seed, seed_digest
from kopt.search.storage.transaction import Transaction

logger = logging.getLogger(__name__)

BASE_NAME = "base.yaml"


@dataclass(frozen=True)
class Imported:
    """What an import has changed."""

    version: int
    """The base's version afterwards."""
    is_new: bool
    """False: everything was known, the version is as before."""
    origins: tuple[str, ...]
    """Origins of which newer evidence came."""
    left_out: tuple[str, ...]
    """Origins that were not taken: this base itself, and what was forgotten."""
    tries: int
    """Tries that count now and did not before."""


class KnowledgeStore:
    """The open base in a folder."""

    def __init__(self, folder: Path, say: Callable[[str], None] = logger.warning) -> None:
        """Open or create the base in `folder`, usually `Settings.knowledge`.

        Args:
            folder: Made if need be.
            say: Told in one line when base.yaml was not what kopt had rendered.

        Raises:
            SetupError: The folder cannot be written, or the ledger is damaged or of a newer kopt.
            InfraError: Other processes kept the ledger busy.
        """
        self.folder = ensure_folder(folder)
        self._say = say
        self._connection = open_ledger(folder)
        try:
            self._heal()
        except BaseException:
            self._connection.close()
            raise

    @property
    def path(self) -> Path:
        """Return where the base lies as YAML."""
        return self.folder / BASE_NAME

    def base(self, version: int | None = None) -> KnowledgeBase:
        """Return the base at `version`, by default the present one.

        Raises:
            ToolError: There is no such version yet.
        """
        with self._reading() as connection:
            if version is None:
                return self._present(connection)
            latest = rows.read_version(connection)
            if not 0 <= version <= latest:
                raise ToolError(f"the base has versions 0 to {latest}; there is no {version}")
            return project(load_seed(), rows.read_ledger(connection, version))

    def learn(self, samples: Iterable[Sample]) -> int:
        """Add samples that were not learned before, all or none, and return how many.

        A sample that was forgotten is known, too: it is not learned again. Of a run that was
        forgotten nothing more is learned.
        """
        by_id = {sample.id: sample for sample in samples}
        with self._writing() as connection:
            known = rows.known_samples(connection, by_id)
            new = [sample for name, sample in by_id.items() if name not in known]
            gone = rows.revoked_targets(connection, "sample", rows.read_version(connection))
            barred = [sample.id for sample in new if sample.run in gone]
            if new:
                version = rows.add_change(connection, "learn")
                rows.insert_samples(connection, new, version)
                rows.insert_revocations(connection, ("sample", barred), version)
        return len(new) - len(barred)

    def edit(self, edits: Sequence[Edit]) -> tuple[Edit, ...]:
        """Apply edits, all or none, and return what they have changed, clamped.

        What changes nothing is left out, so that the same list may come twice.

        Raises:
            ToolError: An edit fits neither the base nor the edits before it.
        """
        applied: list[Edit] = []
        with self._writing() as connection:
            base = self._present(connection)
            known = rows.known_samples(connection, [n for edit in edits for n in edit.evidence])
            known -= rows.revoked_targets(connection, "sample", base.version)
            for edit in map(clamped, edits):
                if changes_nothing(edit, base):
                    continue
                if why := refusal(edit, base, known):
                    raise ToolError(f"the edit {edit.kind} was refused: {why}; none was made")
                applied.append(edit)
                base = extend(base, [(base.version + 1, edit)], base.version)
            if applied:
                rows.insert_edits(connection, applied, rows.add_change(connection, "edit"))
        return tuple(applied)

    def samples(
        self, last: int | None = None, state: str | None = None, run: str | None = None
    ) -> tuple[Sample, ...]:
        """Return samples in the order in which they were learned, without forgotten ones.

        Args:
            last: Only so many, the latest.
            state: Only of programs that were in this state.
            run: Only of this run.
        """
        with self._reading() as connection:
            return read_samples(connection, last, state, run)

    def forget(self, text: str) -> tuple[str, ...]:
        """Let evidence count no more, for good, and return the ids of what was forgotten.

        Args:
            text: A sample id, a run id or the id of an origin that was imported. Of a sample that
                was forgotten before nothing is returned.

        Raises:
            ToolError: There is nothing of that name.
        """
        with self._writing() as connection:
            kind, targets = find_evidence(connection, text)
            barred = {text} - rows.revoked_targets(connection, kind, rows.read_version(connection))
            if targets or barred:
                version = rows.add_change(connection, "forget")
                rows.insert_revocations(connection, (kind, {*targets, *barred}), version)
        return targets

    def import_(self, document: str, name: str = "the document") -> Imported:
        """Take in what another base has learned; twice is as good as once.

        Raises:
            ToolError: The document is no base, contradicts itself or comes from a base that was
                forgotten here; `name` is what it is called.
        """
        theirs = read_base(document, name)
        with self._writing() as connection:
            before = self._present(connection)
            forgotten = rows.revoked_targets(connection, "origin", before.version)
            if theirs.origin in forgotten:
                raise ToolError(f"{name} is of {theirs.origin}, which was forgotten here for good")
            barred = forgotten | {before.origin}
            left_out = tuple(sorted(barred & theirs.origins.keys()))
            for origin in left_out:
                theirs = without_origin(theirs, origin)
            ledger = rows.read_ledger(connection, before.version)
            more = replace(ledger, imports=(*ledger.imports, theirs))
            after = project(load_seed(), more)
            version, is_new = before.version, after != before
            if is_new:
                version = rows.add_change(connection, "import")
                rows.insert_import(connection, theirs, version)
        newer = (name for name, at in theirs.origins.items() if at > before.origins.get(name, -1))
        tries = _tries(after) - _tries(before)
        return Imported(version, is_new, tuple(sorted(newer)), left_out, tries)

    def export(self) -> str:
        """Return the whole base as a document that other bases can import."""
        return render_complete(self.base())

    def close(self) -> None:
        """Close the ledger."""
        self._connection.close()

    def __enter__(self) -> Self:
        """Return the store itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the ledger."""
        self.close()

    def _present(self, connection: sqlite3.Connection) -> KnowledgeBase:
        """Return the latest base, from its snapshot as far as that reaches."""
        latest, snapshot = rows.read_version(connection), rows.read_snapshot(connection)
        if snapshot is None or snapshot.seed != seed_digest():
            return project(load_seed(), rows.read_ledger(connection, latest))
        known = snapshot.base
        if known.version == latest:
            return known
        if not rows.has_only_grown(connection, known.version):
            return project(load_seed(), rows.read_ledger(connection, latest))
        return extend(known, rows.read_changes(connection, known.version, latest), latest)

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        """Yield the connection for reads that all see one version."""
        with guarded(self.folder / FILE_NAME):
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            finally:
                self._connection.execute("ROLLBACK")

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        """Yield the connection for one change; base.yaml follows when it is committed."""
        with guarded(self.folder / FILE_NAME):
            with Transaction(self._connection):
                before = rows.read_version(self._connection)
                yield self._connection
                if rows.read_version(self._connection) == before:
                    return
                text = self._settle()
            self._publish(text)

    def _heal(self) -> None:
        """Make snapshot and base.yaml anew where a kill, another kopt or an editor left others."""
        with guarded(self.folder / FILE_NAME):
            snapshot = rows.read_snapshot(self._connection)
            made = (snapshot.seed, snapshot.rendering) if snapshot else None
            if made == (seed_digest(), self._written()):
                return
            with Transaction(self._connection):
                text = self._settle()
            self._publish(text)

    def _settle(self) -> bytes:
        """Keep the present base as snapshot and return its rendering; within a transaction."""
        base = self._present(self._connection)
        text = render_small(base, load_seed()).encode()
        snapshot = rows.Snapshot(base, seed_digest(), hashlib.sha256(text).hexdigest())
        rows.replace_snapshot(self._connection, snapshot)
        return text

    def _publish(self, text: bytes) -> None:
        """Write base.yaml, unless another process has made a later version of it by now.

        The ledger knows the digest by now: a kill leaves a base.yaml that is known to be ours.
        """
        with Transaction(self._connection):
            snapshot = rows.read_snapshot(self._connection)
            written = self._written()
            digest = hashlib.sha256(text).hexdigest()
            if snapshot is None or snapshot.rendering != digest or written == digest:
                return
            if written is not None and not rows.is_rendering(self._connection, written):
                kept = self.path.with_name(f"base.kept-{written[:8]}.yaml")
                self.path.rename(kept)
                self._say(
                    f"{self.path} was damaged or edited: rendered again, what stood there is in"
                    f" {kept.name} (`kopt kb import` takes in what others have learned)"
                )
            write_atomically(self.path, text)

    def _written(self) -> str | None:
        """Return the digest of base.yaml as it lies there, or None if there is none."""
        try:
            return hashlib.sha256(self.path.read_bytes()).hexdigest()
        except FileNotFoundError:
            return None


def _tries(base: KnowledgeBase) -> int:
    """Return how many tries the entries of a base stand on, of all origins."""
    return sum(
        evidence.tries
        for entry in base.entries.values()
        for by_origin in entry.evidence.values()
        for evidence in by_origin.values()
    )
