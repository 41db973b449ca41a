"""Clients of Pinecone's SDK, opened and closed. The SDK is imported here and at the first use."""

import re
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from kopt.config.errors import BackendUnavailable
from kopt.config.settings import Settings
from kopt.tools.docs.visible_text import is_invisible

if TYPE_CHECKING:
    from pinecone import Index, IndexModel, Pinecone, RetryConfig
    from pinecone.errors import PineconeError

T = TypeVar("T")
_SOURCE_TAG = "kopt"


def within(deadline_s: float, work: Callable[[], T]) -> T:
    """Return what `work` returns, or raise what it raises; a daemon thread runs it.

    Whatever it hangs in, an import or a name server included, the caller goes on in time, and the
    thread does not keep the process from ending.

    Raises:
        TimeoutError: It took longer; it is not waited for.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # the outermost frame of this thread
            outcome.set_exception(error)

    Thread(target=run, name="kopt-deadline", daemon=True).start()
    return outcome.result(deadline_s)


@contextmanager
def opened_client(settings: Settings, retries: "RetryConfig") -> Generator["Pinecone"]:
    """Open a client of the control plane.

    PINECONE_CONTROLLER_HOST is read by the SDK itself.
    """
    from pinecone import Pinecone

    with Pinecone(
        api_key=settings.pinecone_api_key, source_tag=_SOURCE_TAG, retry_config=retries
    ) as client:
        yield client


@contextmanager
def opened_index(client: "Pinecone", host: str, retries: "RetryConfig") -> Generator["Index"]:
    """Open a client of the index at `host`."""
    with client.index(host=host) as index:
        # The SDK gives its indexes three retries, whatever its client was told, and waits up to a
        # minute before each: the reason of a failure would come long after any deadline.
        cast("Any", index)._http._client._transport._config = retries
        yield index


TEXT_FIELD = "chunk_text"
"""Name of the text field in indexes that kopt creates."""
EMBEDDING_MODEL = "multilingual-e5-large"
MOST_RECORDS = {"records": 96, "documents": 50}
"""Limits on one request: the limit of the records API, and what the SDK takes for documents."""
_LISTING_S = 1.0
"""Limit on asking what kind of index the host of the settings is."""


@dataclass(frozen=True)
class IndexShape:
    """How one index is written and asked."""

    kind: Literal["records", "documents"]
    host: str
    text_field: str
    """The one that is embedded."""


def find_index(client: "Pinecone", settings: Settings) -> IndexShape:
    """Return the shape of the index of the settings.

    With a host it is looked up among the project's indexes. Where these cannot be asked for (keys
    and firewalls may allow the index alone), it is taken for one that kopt has created.

    Raises:
        BackendUnavailable: It is not ready, or embeds no text.
        PineconeError: It is not there, or cannot be asked about.
    """
    from pinecone.errors import PineconeError

    host = settings.pinecone_index_host
    if host is None:
        return shape_of(client.indexes.describe(settings.pinecone_index_name))
    try:
        models = within(_LISTING_S, lambda: list(client.indexes.list()))
    except (PineconeError, TimeoutError):
        models = []
    for model in models:
        if _bare(model.host or "") == _bare(host):
            return shape_of(model)
    return IndexShape("records", host, TEXT_FIELD)


def shape_of(model: "IndexModel") -> IndexShape:
    """Return the shape of a described index.

    Raises:
        BackendUnavailable: It is not ready, or embeds no text.
    """
    from pinecone.models.indexes.schema import SemanticTextField, StringField

    if not model.status.ready or not model.host:
        raise BackendUnavailable(
            f"Pinecone's index {model.name} is not ready ({model.status.state}): try again soon"
        )
    for name, field in model.schema.fields.items():
        if isinstance(field, SemanticTextField):
            return IndexShape("records", model.host, name)
        if isinstance(field, StringField) and field.embed is not None:
            return IndexShape("documents", model.host, name)
    raise BackendUnavailable(
        f"Pinecone's index {model.name} embeds no text: name another with PINECONE_INDEX_NAME and"
        " create it with `kopt docs push --create`"
    )


def _bare(host: str) -> str:
    return host.split("://")[-1].rstrip("/").lower()


def records_in(index: "Index", namespace: str) -> int:
    """Return how many records the namespace has; a few seconds behind what was written.

    Raises:
        PineconeError: The request failed.
    """
    stats = index.describe_index_stats()
    known = stats.namespaces.get(namespace)
    return known.vector_count if known else 0


def ids_in(index: "Index", shape: IndexShape, namespace: str) -> frozenset[str]:
    """Return the ids of all records of the namespace.

    Raises:
        PineconeError: A request failed.
    """
    if shape.kind == "documents":
        listed = index.documents.list(namespace=namespace)
        return frozenset([document.id for document in listed])
    pages = index.list(namespace=namespace)
    return frozenset([one.id for page in pages for one in page.vectors if one.id])


_MOST_QUOTED = 200
ADVICE = {
    401: ": it does not know this key; set PINECONE_API_KEY to one of the index's project",
    402: ": the project has to pay for this; see to its plan",
    403: ": this key may not do this with the index {name}; use another or see to its role",
    404: ": there is no index {name}; make it with `kopt docs push --create`, or set"
    " PINECONE_INDEX_NAME and PINECONE_INDEX_HOST",
    429: ": a limit of the plan is reached; wait, or see to the plan",
    500: ": the service has trouble; try again later",
}
"""What to do, by the status of an answer; 500 stands for all from there on."""


def unavailable(error: "PineconeError", settings: Settings) -> BackendUnavailable:
    """Return the error of kopt for one of the client."""
    from pinecone.errors import (
        ApiError,
        PineconeConnectionError,
        PineconeTimeoutError,
        ResponseParsingError,
    )

    if isinstance(error, ApiError):
        status = error.status_code
        advice = ADVICE.get(500 if status >= 500 else status, "")
        text = f"Pinecone answered {status}{advice.format(name=settings.pinecone_index_name)}"
        said = quoted(error.message, settings)
        return BackendUnavailable(f"{text} (it says: {said})" if said else text)
    if isinstance(error, PineconeTimeoutError):
        return BackendUnavailable("Pinecone did not answer in time: try again")
    if isinstance(error, PineconeConnectionError):
        return BackendUnavailable(
            "Pinecone cannot be reached: see to the network, a firewall and PINECONE_INDEX_HOST"
            f" ({quoted(error.message, settings)})"
        )
    if isinstance(error, ResponseParsingError):
        return BackendUnavailable(
            "what answered is not Pinecone, or a newer one: see to PINECONE_INDEX_HOST and proxies"
        )
    said = quoted(str(error), settings)
    return BackendUnavailable(f"Pinecone's client refuses the request: {said}")


def quoted(text: str, settings: Settings) -> str:
    """Return the first line of foreign text, short, without controls and without the key."""
    visible = (letter for letter in text if letter in "\n\t" or not is_invisible(letter))
    line = " ".join("".join(visible).split())
    if key := settings.pinecone_api_key:  # only now: nothing invisible breaks it up any more
        line = re.sub(" ?".join(map(re.escape, key)), "***", line)
    return line if len(line) <= _MOST_QUOTED else f"{line[:_MOST_QUOTED]}…"
