"""Sources that a process does not see: KOPT_WITHOUT_SOURCES names them."""

from collections.abc import Collection

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.tools.docs.records import Chunk, SearchRequest

VARIABLE = "KOPT_WITHOUT_SOURCES"


def without_hidden(request: SearchRequest, settings: Settings) -> SearchRequest:
    """Return `request` with the hidden sources added to those that it leaves out.

    Raises:
        ToolError: It asks for a hidden source by name.
    """
    if not settings.without_sources:
        return request
    for source in (request.source or "").split(","):
        refuse_hidden(source.strip(), settings)
    left_out = dict.fromkeys((*request.without, *settings.without_sources))
    return request.model_copy(update={"without": tuple(left_out)})


def refuse_hidden(source: str, settings: Settings) -> None:
    """Refuse `source` if it is hidden.

    Raises:
        ToolError: It is; the message names the variable.
    """
    if source in settings.without_sources:
        raise ToolError(f"source {source!r} is hidden from this process by {VARIABLE}")


def without_places(chunk: Chunk, hidden: Collection[str]) -> Chunk:
    """Return `chunk` without the places of equal code in `hidden` sources."""
    seen = tuple(place for place in chunk.also_at if place.partition(":")[0] not in hidden)
    return chunk.model_copy(update={"also_at": seen})
