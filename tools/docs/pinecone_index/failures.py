"""What went wrong with Pinecone, as one line that says what to do. The key is in none of them."""

import re
from typing import TYPE_CHECKING

from kopt.config.errors import BackendUnavailable
from kopt.config.settings import Settings
from kopt.tools.docs.excerpts import is_invisible

if TYPE_CHECKING:
    from pinecone.errors import PineconeError

_MOST_QUOTED = 200


def unavailable(error: "PineconeError", settings: Settings) -> BackendUnavailable:
    """Return the error of kopt for one of the client."""
    from pinecone.errors import (
        ApiError,
        PineconeConnectionError,
        PineconeTimeoutError,
        ResponseParsingError,
    )

    name = settings.pinecone_index_name
    if isinstance(error, ApiError):
        advice = _advice(error.status_code, name)
        text = f"Pinecone answered {error.status_code}{advice}"
        said = _quoted(error.message, settings)
        return BackendUnavailable(f"{text} (it says: {said})" if said else text)
    if isinstance(error, PineconeTimeoutError):
        return BackendUnavailable("Pinecone did not answer in time: try again")
    if isinstance(error, PineconeConnectionError):
        return BackendUnavailable(
            "Pinecone cannot be reached: see to the network, a firewall and PINECONE_INDEX_HOST"
            f" ({_quoted(error.message, settings)})"
        )
    if isinstance(error, ResponseParsingError):
        return BackendUnavailable(
            "what answered is not Pinecone, or a newer one: see to PINECONE_INDEX_HOST and proxies"
        )
    said = _quoted(str(error), settings)
    return BackendUnavailable(f"Pinecone's client refuses the request: {said}")


def stumbled(error: Exception, settings: Settings) -> BackendUnavailable:
    """Return the error of kopt for one that the client does not know itself."""
    said = _quoted(f"{type(error).__name__}: {error}", settings)
    return BackendUnavailable(f"Pinecone's client stumbles over what answered: {said}")


def namespace_empty(namespace: str, settings: Settings) -> BackendUnavailable:
    """Return the error of an index without records of this library."""
    return BackendUnavailable(
        f"Pinecone's index {settings.pinecone_index_name} has no records of this library"
        f" (namespace {namespace}): upload them with `kopt docs push`"
    )


def _advice(status: int, name: str) -> str:
    if status == 401:
        return ": it does not know this key; set PINECONE_API_KEY to one of the index's project"
    if status == 402:
        return ": the project has to pay for this; see to its plan"
    if status == 403:
        return f": this key may not do this with the index {name}; use another or see to its role"
    if status == 404:
        return (
            f": there is no index {name}; make it with `kopt docs push --create`, or set"
            " PINECONE_INDEX_NAME and PINECONE_INDEX_HOST"
        )
    if status == 429:
        return ": a limit of the plan is reached; wait, or see to the plan"
    if status >= 500:
        return ": the service has trouble; try again later"
    return ""


def _quoted(text: str, settings: Settings) -> str:
    """Return the first line of foreign text, short, without controls and without the key."""
    visible = (letter for letter in text if letter in "\n\t" or not is_invisible(letter))
    line = " ".join("".join(visible).split())
    if key := settings.pinecone_api_key:  # only now: nothing invisible breaks it up any more
        line = re.sub(" ?".join(map(re.escape, key)), "***", line)
    return line if len(line) <= _MOST_QUOTED else f"{line[:_MOST_QUOTED]}…"
