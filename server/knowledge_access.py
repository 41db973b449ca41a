"""The knowledge base as the command line opens it, and documents of bases as files."""

from pathlib import Path

import click

from kopt.config.errors import SetupError, ToolError
from kopt.config.settings import Settings
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.store import KnowledgeStore
from kopt.search.knowledge.yaml_reader import DOCUMENT_LIMIT, read_base

from .session import Session, print_document


def open_knowledge(settings: Settings, *, for_reading: bool = False) -> KnowledgeStore:
    """Return the open base of this KOPT_HOME; what had to be fixed is said on stderr.

    Raises:
        SetupError: It cannot be written, and not only `for_reading`; is damaged or of a newer kopt.
    """

    def say(line: str) -> None:
        click.echo(line, err=True)

    return KnowledgeStore(settings.knowledge, say, for_reading=for_reading)


def read_document(path: Path) -> str:
    """Return the text of a base's document.

    Raises:
        ToolError: It cannot be read, is no text or far too large.
    """
    try:
        with path.open("rb") as file:
            data = file.read(DOCUMENT_LIMIT + 1)
        if len(data) > DOCUMENT_LIMIT:
            raise ToolError(f"{path} is larger than {DOCUMENT_LIMIT} bytes: no knowledge base")
        return data.decode()
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ToolError(f"{path} is no UTF-8 text: no knowledge base") from error


def read_base_file(path: Path) -> KnowledgeBase:
    """Return the base that a file describes, or raise ToolError."""
    return read_base(read_document(path), str(path))


def hand_out(session: Session, document: str, to: Path | None) -> None:
    """Write a document where the user wants it: to a file, else to stdout.

    With --json it is the text of one JSON document.

    Raises:
        SetupError: The file cannot be written.
    """
    if to is not None:
        try:
            to.write_text(document, encoding="utf-8")
        except OSError as error:
            raise SetupError(f"cannot write {to}: {error.strerror}; choose another file") from error
    if session.as_json:
        shown = {"path": str(to)} if to else {"document": document}
        print_document({"schema": "kopt.knowledge-document/1", "status": "passed", **shown})
    elif to is not None:
        click.echo(to, err=True)
    else:
        click.echo(document, nl=False)
