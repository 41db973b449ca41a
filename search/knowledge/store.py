"""The knowledge base of a KOPT_HOME: learned into by any number of runs at once, read as versions.

`samples.sqlite` is the truth; `base.yaml` beside it is rendered after every change, for people.
"""

import hashlib
import logging
import sqlite3
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

from kopt.config.errors import SetupError, ToolError
from kopt.config.files import ensure_folder, write_atomically
from kopt.kernels.record import Record
from kopt.search.storage.transaction import Transaction

from .base import KnowledgeBase, dump_base
from .edits import Edit, changes_nothing, refusal
from .ledger import FILE_NAME, Ledger, ProjectedBase, guarded, open_ledger
from .ledger_view import view_ledger
from .merge import without_origin
from .projection import extend, project
from .records import Sample
from .seed_base import load_seed, seed_digest
from .yaml_reader import read_base
from .yaml_writer import render_complete, render_small

logger = logging.getLogger(__name__)

BASE_NAME = "base.yaml"
Say = Callable[[str], None]


class Imported(Record):
    """The result of an import."""

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


class KnowledgeStore(AbstractContextManager["KnowledgeStore"]):
    """The open base in a folder."""

    def __init__(
        self, folder: Path, say: Say = logger.warning, *, for_reading: bool = False
    ) -> None:
        """Open or create the base in `folder`.

        Args:
            folder: Where it lies.
            say: Told if base.yaml was not kopt's, or if nothing can be written.
            for_reading: What is known can be read although the folder cannot be written.

        Raises:
            SetupError: The folder cannot be written, or the ledger is damaged or of a newer kopt.
            InfraError: Other processes kept the ledger busy.
        """
        self.folder = folder
        self._say = say
        try:
            self._connection = self._opened()
        except SetupError as error:
            if not for_reading:
                raise
            self._connection = view_ledger(folder)
            say(f"nothing is written here, only read: {error}")
        self._ledger = Ledger(self._connection)

    def _opened(self) -> sqlite3.Connection:
        """Return a connection for writing, once what a kill or an editor left is mended."""
        connection = open_ledger(ensure_folder(self.folder))
        self._ledger = Ledger(connection)
        try:
            self._heal(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def path(self) -> Path:
        """Return where the base lies as YAML."""
        return self.folder / BASE_NAME

    def base(self, version: int | None = None) -> KnowledgeBase:
        """Return the base at `version`, by default the present one.

        Raises:
            ToolError: There is no such version yet.
        """
        with self._reading() as ledger:
            if version is None:
                return self._present()
            latest = ledger.version
            if not 0 <= version <= latest:
                raise ToolError(f"the base has versions 0 to {latest}; there is no {version}")
            return project(load_seed(), ledger.content(version))

    def learn(self, samples: Iterable[Sample]) -> int:
        """Add samples that were not learned before, all or none, and return how many.

        A sample that was forgotten is known, too: it is not learned again. Of a run that was
        forgotten nothing more is learned.
        """
        by_id = {sample.id: sample for sample in samples}
        with self._writing() as ledger:
            known = ledger.known_samples(by_id)
            new = [sample for name, sample in by_id.items() if name not in known]
            gone = ledger.revoked("sample", ledger.version)
            barred = [sample.id for sample in new if sample.run in gone]
            if new:
                version = ledger.add_change("learn")
                rows = ((one.id, one.run, one.state, one.model_dump_json()) for one in new)
                ledger.insert("learn", rows, version)
                ledger.insert("forget", (("sample", name) for name in barred), version)
        return len(new) - len(barred)

    def edit(self, edits: Sequence[Edit]) -> tuple[Edit, ...]:
        """Apply edits, all or none, and return those that changed something.

        An edit that changes nothing is left out, so that the same list may come twice.

        Raises:
            ToolError: An edit fits neither the base nor the edits before it.
        """
        applied: list[Edit] = []
        with self._writing() as ledger:
            base = self._present()
            known = ledger.known_samples(name for edit in edits for name in edit.evidence)
            known -= ledger.revoked("sample", base.version)
            for edit in edits:
                if changes_nothing(edit, base):
                    continue
                if why := refusal(edit, base, known):
                    raise ToolError(f"the edit {edit.kind} was refused: {why}; none was made")
                applied.append(edit)
                base = extend(base, [(base.version + 1, edit)], base.version)
            if applied:
                rows = ((edit.model_dump_json(),) for edit in applied)
                ledger.insert("edit", rows, ledger.add_change("edit"))
        return tuple(applied)

    def samples(
        self, last: int | None = None, state: str | None = None, run: str | None = None
    ) -> tuple[Sample, ...]:
        """Return the `last` samples of programs in `state` and of `run`, in the order of learning.

        Forgotten ones are left out; None stands for all.
        """
        with self._reading() as ledger:
            return ledger.samples(last, state, run)

    def forget(self, text: str) -> tuple[str, ...]:
        """Let a sample, a run or an imported origin count no more, for good.

        Returns:
            The ids of what was forgotten by this call.

        Raises:
            ToolError: There is nothing of that name.
        """
        with self._writing() as ledger:
            kind, targets = ledger.find(text)
            barred = {text} - ledger.revoked(kind, ledger.version)
            if targets or barred:
                rows = ((kind, name) for name in {*targets, *barred})
                ledger.insert("forget", rows, ledger.add_change("forget"))
        return targets

    def import_(self, document: str, name: str = "the document") -> Imported:
        """Take in what another base has learned; twice is as good as once.

        Raises:
            ToolError: The document is no base, contradicts itself or comes from a base that was
                forgotten here; `name` is what it is called.
        """
        theirs = read_base(document, name)
        with self._writing() as ledger:
            before = self._present()
            forgotten = ledger.revoked("origin", before.version)
            if theirs.origin in forgotten:
                raise ToolError(f"{name} is of {theirs.origin}, which was forgotten here for good")
            barred = forgotten | {before.origin}
            left_out = tuple(sorted(barred & theirs.origins.keys()))
            for origin in left_out:
                theirs = without_origin(theirs, origin)
            content = ledger.content(before.version)
            after = project(load_seed(), replace(content, imports=(*content.imports, theirs)))
            version, is_new = before.version, after != before
            if is_new:
                version = ledger.add_change("import")
                ledger.insert("import", [(dump_base(theirs),)], version)
        newer = (name for name, at in theirs.origins.items() if at > before.origins.get(name, -1))
        return Imported(
            version=version,
            is_new=is_new,
            origins=tuple(sorted(newer)),
            left_out=left_out,
            tries=after.tries - before.tries,
        )

    def export(self) -> str:
        """Return the whole base as a document that other bases can import."""
        return render_complete(self.base())

    def __exit__(self, *_: object) -> None:
        """Close the ledger."""
        self._connection.close()

    def _present(self) -> KnowledgeBase:
        """Return the latest base, from its snapshot as far as that reaches; in a transaction."""
        latest, snapshot = self._ledger.version, self._ledger.snapshot()
        if snapshot is None or snapshot.seed != seed_digest():
            return project(load_seed(), self._ledger.content(latest))
        known = snapshot.base
        if known.version == latest:
            return known
        if not self._ledger.has_only_grown(known.version):
            return project(load_seed(), self._ledger.content(latest))
        return extend(known, self._ledger.changes(known.version, latest), latest)

    @contextmanager
    def _reading(self) -> Generator[Ledger]:
        """Yield the ledger for reads that all see one version."""
        with guarded(self.folder / FILE_NAME):
            self._connection.execute("BEGIN")
            try:
                yield self._ledger
            finally:
                self._connection.execute("ROLLBACK")

    @contextmanager
    def _writing(self) -> Generator[Ledger]:
        """Yield the ledger for one change; base.yaml follows when it is committed."""
        with guarded(self.folder / FILE_NAME):
            with Transaction(self._connection):
                before = self._ledger.version
                yield self._ledger
                if self._ledger.version == before:
                    return
                text = self._settle()
            self._publish(text, self._connection)

    def _heal(self, connection: sqlite3.Connection) -> None:
        """Make snapshot and base.yaml anew where a kill, another kopt or an editor left others."""
        with guarded(self.folder / FILE_NAME):
            snapshot = self._ledger.snapshot()
            made = (snapshot.seed, snapshot.rendering) if snapshot else None
            if made == (seed_digest(), self._written()):
                return
            with Transaction(connection):
                text = self._settle()
            self._publish(text, connection)

    def _settle(self) -> bytes:
        """Keep the present base as snapshot and return its rendering; within a transaction."""
        base = self._present()
        text = render_small(base, load_seed()).encode()
        digest = hashlib.sha256(text).hexdigest()
        self._ledger.keep_snapshot(ProjectedBase(base, seed_digest(), digest))
        return text

    def _publish(self, text: bytes, connection: sqlite3.Connection) -> None:
        """Write base.yaml, unless another process has made a later version of it by now.

        The ledger knows the digest by now: a kill leaves a base.yaml that is known to be ours.
        """
        with Transaction(connection):
            snapshot = self._ledger.snapshot()
            written = self._written()
            digest = hashlib.sha256(text).hexdigest()
            if snapshot is None or snapshot.rendering != digest or written == digest:
                return
            if written is not None and not self._ledger.is_rendering(written):
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
