"""Judged questions: what is asked, the places that answer each, and whether a hit is one.

An answer is a group of interchangeable places: a kernel and the copy of it in another library, or
a kernel and its launcher. A place is `source:path:function`, as somebody read it in the sources.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from kopt.tools.docs.records import Chunk, Hit

QUERIES = Path(__file__).with_name("queries.yaml")
DRAWN = Path(__file__).with_name("drawn.yaml")
"""Questions about functions that a seeded generator drew: no topic was chosen."""
GOALS = Path(__file__).with_name("goals.yaml")
"""Questions about what a planner wants to reach, with drawn techniques and subjects."""
HELD_OUT = Path(__file__).with_name("held_out.yaml")
"""Questions that nothing was tuned on."""


@dataclass(frozen=True, order=True)
class Place:
    """A function or type in a file of a source."""

    source: str
    path: str
    name: str
    """`member` or `Owner::member`; template arguments left out."""


@dataclass(frozen=True)
class JudgedQuery:
    """A question with everything that answers it."""

    id: str
    file: str
    """Of which set it is: queries, drawn, goals or held_out."""
    style: str
    """identifier, natural, goal or item."""
    half: str
    """tune: single questions may be looked at. check: only the figures are. first, second: parts of
    the held-out set, nothing was tuned on them."""
    query: str
    groups: tuple[frozenset[Place], ...]


def judged_queries(path: Path = QUERIES) -> list[JudgedQuery]:
    """Return the questions of a file; those of the development set whose topics were chosen."""
    entries = yaml.safe_load(path.read_text("utf-8"))
    return [
        JudgedQuery(
            entry["id"],
            path.stem,
            entry["style"],
            entry["half"],
            entry["query"],
            tuple(
                frozenset(Place(*place.split(":", 2)) for place in group)
                for group in entry["wants"]
            ),
        )
        for entry in entries
    ]


def found_groups(query: JudgedQuery, hit: Hit | Chunk) -> frozenset[int]:
    """Return the numbers of the groups that `hit` answers."""
    return frozenset(
        number
        for number, group in enumerate(query.groups)
        if any(is_place(hit, place) for place in group)
    )


def is_place(hit: Hit | Chunk, place: Place) -> bool:
    """Say whether `hit` is at `place`, or is a copy of what stands there.

    A hit's symbol is a name, a name with its owner, or several of them separated by commas. A
    place that is named without an owner is met by any of these parts.
    """
    if (place.source, place.path) not in _files(hit):
        return False
    wanted = _parts(place.name)
    return any(_contains(_parts(name), wanted) for name in _names(hit.symbol or ""))


def stale_places(queries: Iterable[JudgedQuery], chunks: Iterable[Chunk]) -> list[Place]:
    """Return the judged places that no chunk has any longer: renamed, moved or filtered out."""
    by_file: dict[tuple[str, str], list[Chunk]] = {}
    for chunk in chunks:
        for file in _files(chunk):
            by_file.setdefault(file, []).append(chunk)
    places = {place for query in queries for group in query.groups for place in group}
    return sorted(
        place
        for place in places
        if not any(is_place(chunk, place) for chunk in by_file.get((place.source, place.path), ()))
    )


def _files(hit: Hit | Chunk) -> set[tuple[str, str]]:
    """Return source and path of a hit and of its copies, `path:line` or `source:path:line`."""
    files = {(hit.source, hit.path)}
    for copy in hit.also_at:
        *source, path, _ = copy.rsplit(":", 2)
        files.add((source[0] if source else hit.source, path))
    return files


def _names(symbol: str) -> list[str]:
    """Return the names in a symbol; commas within template arguments separate nothing."""
    without_arguments = symbol
    while (shorter := re.sub(r"<[^<>]*>", "", without_arguments)) != without_arguments:
        without_arguments = shorter
    return [name.strip() for name in without_arguments.split(",")]


def _parts(name: str) -> list[str]:
    return re.split(r"::|\.", name)


def _contains(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    return any(
        list(parts[at : at + len(wanted)]) == list(wanted)
        for at in range(len(parts) - len(wanted) + 1)
    )
