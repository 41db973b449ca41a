"""The index of kopt's own documents, built once in a test run and copied into homes."""

import shutil
from pathlib import Path

from kopt.config.settings import Settings
from kopt.tools.docs.own.index import opened_own


def build_docs(home: Path, problems: Path | None = None) -> Path:
    """Return the folder of the index of a home without winners; one process builds it.

    Args:
        home: Of the index.
        problems: Those of the user, which are in the index, too.
    """
    settings = Settings(home=home, problems=problems)
    with opened_own(settings):
        return settings.docs_cache


def copy_docs(built: Path, home: Path) -> Path:
    """Return `home`, where the first search finds its index."""
    shutil.copytree(built, Settings(home=home).docs_cache)
    return home
