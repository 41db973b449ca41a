"""Searching and reading documents for a run: as `tools/docs` does it, and logged with the run."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.search.storage.transaction import now_us
from kopt.search.store.run_folders import find_run
from kopt.tools.docs.query.hidden_sources import without_hidden
from kopt.tools.docs.query.request import plain_text
from kopt.tools.docs.query.search import read_document, search_documents
from kopt.tools.docs.records import DocumentText, SearchRequest, SearchResult

from .retrieval_log import Retrieval, RetrievedText, append_retrieval


@dataclass(frozen=True)
class Asker:
    """The run that documents are read for, and the caller."""

    run: str | None
    """Id of the run, or an unmistakable part of one; None for that of KOPT_RUN, if it is set."""
    name: str
    """What the log calls it, e.g. `kopt docs search`."""


def search_for_run(request: SearchRequest, asker: Asker, settings: Settings) -> SearchResult:
    """Return what `search_documents` does, once it is logged with the run, if there is one.

    Raises:
        ToolError: There is no such run, or `request` asks for what cannot be had.
        SetupError: The log cannot be written.
    """
    folder = _folder(asker, settings)
    result = search_documents(request, settings)
    if folder is None:
        return result
    asked = request.model_dump(exclude_defaults=True, exclude={"query", "without"})
    hidden = without_hidden(request, settings).without
    hits = tuple(
        RetrievedText(
            uid=hit.uid,
            score=hit.score,
            sha256=_digest(hit.text),
            left_out_lines=hit.left_out_lines,
        )
        for hit in result.hits
    )
    retrieval = Retrieval(
        time_us=now_us(),
        asked_by=asker.name,
        query=result.query,
        filters={name: _plain(value) for name, value in asked.items()},
        without=hidden,
        backend=result.backend,
        degraded=result.degraded,
        hits=hits,
        further=tuple(further.uid for further in result.further),
    )
    append_retrieval(folder, retrieval)
    return result


def read_for_run(uid: str, asker: Asker, settings: Settings) -> DocumentText:
    """Return what `read_document` does, once it is logged with the run, if there is one.

    Raises:
        ToolError: There is no such run or no such document, or its source is hidden.
        SetupError: The log cannot be written.
    """
    folder = _folder(asker, settings)
    document = read_document(uid, settings)
    if folder is None:
        return document
    text = RetrievedText(uid=document.uid, sha256=_digest(document.document.body))
    retrieval = Retrieval(
        time_us=now_us(),
        asked_by=asker.name,
        filters={},
        without=settings.without_sources,
        hits=(text,),
    )
    append_retrieval(folder, retrieval)
    return document


def _folder(asker: Asker, settings: Settings) -> Path | None:
    if asker.run is not None:
        return find_run(asker.run, settings)
    if settings.retrieval_run is None:
        return None
    try:
        return find_run(settings.retrieval_run, settings)
    except ToolError as error:  # which names other runs, and any caller of a server may read this
        raise ToolError(f"KOPT_RUN: no single run matches {settings.retrieval_run!r}") from error


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", errors="replace")).hexdigest()


def _plain(value: str | int) -> str | int:
    return plain_text(value) if isinstance(value, str) else value
