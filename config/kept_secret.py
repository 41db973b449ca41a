"""Secrets of this machine: 32 random bytes each, made once, in KOPT_HOME/secrets (mode 0600).

What such a secret does not stop: whoever may read the owner's files. The sandbox keeps candidates
away from them.
"""

import secrets
from pathlib import Path

from .errors import SetupError
from .files import create_file, ensure_folder

_SECRET_BYTES = 32


def kept_secret(home: Path, name: str) -> bytes:
    """Return the secret `name`; the first process makes it, and a damaged file is replaced.

    Raises:
        SetupError: It cannot be kept.
    """
    path = _place(home, name)
    ensure_folder(path.parent)
    try:
        if path.exists() and path.stat().st_size != _SECRET_BYTES:
            path.unlink(missing_ok=True)
        if not path.exists():
            create_file(path, secrets.token_bytes(_SECRET_BYTES))
        return path.read_bytes()
    except OSError as error:
        raise SetupError(f"cannot keep a secret in {path.parent}: {error.strerror}") from error


def known_secret(home: Path, name: str) -> bytes | None:
    """Return the secret `name`; None where there is none, or none that can be read whole."""
    try:
        found = _place(home, name).read_bytes()
    except OSError:
        return None
    return found if len(found) == _SECRET_BYTES else None


def _place(home: Path, name: str) -> Path:
    return home / "secrets" / name
