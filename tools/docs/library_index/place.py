"""Where the library index and what it is built from lie."""

from pathlib import Path

from kopt.config.settings import Settings


def library_folder(settings: Settings) -> Path:
    """Return the folder of everything about the library index; it may not exist."""
    return (settings.docs_cache / "library").absolute()


def library_index_path(settings: Settings) -> Path:
    """Return where the index lies once it is built."""
    return library_folder(settings) / "index.sqlite"


def parts_path(settings: Settings) -> Path:
    """Return where the parts lie that it is built from."""
    return library_folder(settings) / "parts.sqlite"
