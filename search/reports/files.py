"""The report of a run as files in its folder: `report.md` and `report.html`."""

from pathlib import Path

from kopt.config.errors import SetupError
from kopt.config.files import write_atomically
from kopt.config.settings import Settings
from kopt.search.store.run_reader import RunReader

from .contents import read_contents
from .markdown import render_markdown
from .page import render_page


def write_reports(reader: RunReader, folder: Path, settings: Settings) -> tuple[Path, Path]:
    """Write both files of the run in `folder`, over older ones; return page and Markdown.

    Raises:
        InfraError: A source of the run is missing or damaged.
        SetupError: The folder cannot be written.
    """
    contents = read_contents(reader, folder, settings)
    page, markdown = folder / "report.html", folder / "report.md"
    for path, text in ((page, render_page(contents)), (markdown, render_markdown(contents))):
        try:
            write_atomically(path, text.encode())
        except OSError as error:
            raise SetupError(f"cannot write {path}: {error.strerror}") from error
    return page, markdown
