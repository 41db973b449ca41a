"""Addresses of what a reply leaves out: documents of the index, a job's result and log."""

from collections.abc import Iterator, Sequence
from typing import Any, cast
from urllib.parse import quote

from mcp.types import ResourceLink

DOCUMENTS = "kopt://docs/"


def document_uri(uid: str) -> str:
    """Return where a client reads the whole document of a hit."""
    return DOCUMENTS + quote(uid, safe="/:,+@=")


def result_uri(job_id: str) -> str:
    """Return the address of the whole result of a job."""
    return f"kopt://jobs/{job_id}/result"


def log_uri(job_id: str) -> str:
    """Return the address of what compilers and other tools said in a job."""
    return f"kopt://jobs/{job_id}/log"


def log_paths(document: Any) -> Iterator[str]:
    """Yield the path of each log that a result names, at any depth, each once."""
    yield from dict.fromkeys(_log_paths(document))


def job_links(job_id: str, document: dict[str, Any]) -> list[ResourceLink]:
    """Return the links to the whole result of a job, and to its log if there is one."""
    links = [
        ResourceLink(
            name="result",
            uri=result_uri(job_id),
            mime_type="application/json",
            description="The whole result",
        )
    ]
    if next(log_paths(document), None) is not None:
        links.append(
            ResourceLink(
                name="log",
                uri=log_uri(job_id),
                mime_type="text/plain",
                description="What the compiler and other tools said, whole",
            )
        )
    return links


def _log_paths(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in cast(dict[str, Any], value).items():
            if key == "log_path" and isinstance(each, str):
                yield each
            else:
                yield from _log_paths(each)
    elif isinstance(value, list):
        for each in cast(Sequence[Any], value):
            yield from _log_paths(each)
