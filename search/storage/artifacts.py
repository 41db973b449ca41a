"""The content-addressed folder: sources, cubins and documents under the SHA-256 of their bytes.

One folder serves every run of a KOPT_HOME and any number of processes at once. A digest names its
bytes for ever, so a file that exists is never rewritten; bytes are checked on every read. Which
run refers to which digest stands in the run's `blob` table, not here.
"""

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path

from kopt.config.errors import InfraError
from kopt.config.files import TEMPORARY_PREFIX, ensure_folder, fsync_path, write_atomically

# Older temporary files belong to a writer that was killed: no write takes anywhere near this long.
_ABANDONED_AFTER_S = 24 * 3600.0


@dataclass(frozen=True)
class ArtifactStore:
    """Bytes by digest, below `root`: `ab/ab12...` for the digest `ab12...`."""

    root: Path

    def put(self, data: bytes) -> str:
        """Store `data` durably and return its digest, 64 hex digits.

        Only afterwards may a row name the digest.
        """
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(digest)
        if path.exists():
            return digest
        ensure_folder(path.parent)
        write_atomically(path, data)
        fsync_path(self.root)
        return digest

    def get(self, digest: str) -> bytes:
        """Return the bytes of `digest`.

        Raises:
            InfraError: They are missing, or are no longer what was written.
        """
        path = self._path(digest)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise InfraError(f"artifact {path} cannot be read: {error.strerror}") from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise InfraError(f"artifact {path} is damaged: its bytes do not have its digest")
        return data

    def sweep(self) -> int:
        """Delete temporary files that a killed writer left a day ago or earlier; their number."""
        oldest = time.time() - _ABANDONED_AFTER_S
        temporary = self.root.glob(f"*/{TEMPORARY_PREFIX}*")
        abandoned = [path for path in temporary if _is_older(path, oldest)]
        for path in abandoned:
            path.unlink(missing_ok=True)
        return len(abandoned)

    def _path(self, digest: str) -> Path:
        return self.root / digest[:2] / digest


def _is_older(path: Path, oldest: float) -> bool:
    """Say whether a file is there and from before `oldest`: its writer may just have renamed it."""
    try:
        return path.stat().st_mtime < oldest
    except FileNotFoundError:
        return False


def artifacts_of(home: Path) -> ArtifactStore:
    """Return the artifact store of a KOPT_HOME for reading; nothing is created."""
    return ArtifactStore(home / "store" / "cas")


def open_artifacts(home: Path) -> ArtifactStore:
    """Return the artifact store of a KOPT_HOME, created if need be.

    Raises:
        SetupError: The folder cannot be created or written.
    """
    store = artifacts_of(home)
    ensure_folder(store.root)
    return store
