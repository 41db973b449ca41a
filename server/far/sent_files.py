"""Files that a caller sends: cubins, and problems' folders, each kept by its content.

Cubins lie in the compile cache, which GPU workers may read, as entries of their own.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import kopt
from kopt.config.errors import ToolError
from kopt.config.files import (
    ensure_folder,
    ensure_trusted_folder,
    evict_least_used,
    publish_folder,
    staging_folder,
    write_atomically,
)
from kopt.config.settings import Settings
from kopt.tools.cuda.cubin_cache import CUBIN_NAME
from kopt.tools.remote.sending import folder_digest
from kopt.tools.remote.sent_kernel import FolderName

_MOST_CUBINS = 4096
_MOST_FOLDERS = 64


class SentFiles:
    """The files of all callers of this user, below KOPT_HOME."""

    def __init__(self, settings: Settings) -> None:
        """Make room for what comes.

        Raises:
            SetupError: KOPT_HOME cannot be written.
        """
        self._cubins = ensure_trusted_folder(
            settings.cubin_cache.absolute(), settings.home.absolute()
        )
        self._folders = ensure_folder(settings.home.absolute() / "remote" / "problems")
        evict_least_used(self._cubins, _MOST_CUBINS)
        evict_least_used(self._folders, _MOST_FOLDERS)

    def cubin(self, content: bytes) -> Path:
        """Return the path of a cubin with this content."""
        folder = self._cubins / f"sent-{hashlib.sha256(content).hexdigest()}"
        path = folder / CUBIN_NAME
        if not path.is_file():
            folder.mkdir(mode=0o700, exist_ok=True)
            write_atomically(path, content, durable=False)
        return path

    def folder(self, name: FolderName) -> Path:
        """Return a problem's folder.

        Raises:
            ToolError: It was not sent.
        """
        if name.packaged is not None:
            return Path(next(iter(kopt.__path__))) / _within(name.packaged)
        folder = self._kept(name.digest or "")
        if not folder.is_dir():
            raise ToolError(f"no folder {name.digest} was sent")
        return folder

    def has_folder(self, digest: str) -> bool:
        """Return whether a folder of this content is here; its time of use is now."""
        folder = self._kept(digest)
        if not folder.is_dir():
            return False
        os.utime(folder)
        return True

    def keep_folder(self, digest: str, files: Mapping[str, bytes]) -> None:
        """Keep `files` as the folder of that content.

        Raises:
            ToolError: They have another digest: another caller's baselines could be replaced so.
        """
        folder = self._kept(digest)
        if digest != folder_digest(files):
            raise ToolError(f"files came that are not those of the folder {digest}")
        with staging_folder(folder) as fresh:
            for name, content in files.items():
                path = fresh / _within(name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            publish_folder(fresh, folder)

    def _kept(self, digest: str) -> Path:
        if not (digest.isascii() and digest.isalnum()):
            raise ToolError(f"{digest[:80]!r} is no digest")
        return self._folders / digest


def _within(name: str) -> PurePosixPath:
    """Return a path that stays in its folder.

    Raises:
        ToolError: It does not.
    """
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ToolError(f"a file called {name[:80]!r}")
    return path
