"""Places for the manual beside code: winners, and production code's tens of thousands of functions.

Who asks how to do something, or about kopt, in words rather than names of code, gets two pages of
the manual near the top; who names what only kopt has, a status or a key of a header, gets
three, one of them first; who asks how to begin gets the tutorial first.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from kopt.kernels.status import Status, Verdict
from kopt.tools.docs.indexing.collection import Collection
from kopt.tools.docs.indexing.filters import Filters
from kopt.tools.docs.words.code_tokens import query_terms

from .candidates import PageCandidate
from .query_words import QueryWords

MANUAL = "docs"
_ABOUT_KOPT = (
    r"\b(how (do|can|to|does)|what (is|are|does)|kopt|manual|install|my own)\b"
    r"|^(how|why|which|when)\b"
    r"|\b(receipts?|winners?|beam|suite|simulator|sandbox|stitch|baselines?|kernelbench)\b"
    r"|\bscratch buffers?\b"
)
_STATUSES = "|".join(one.value for one in (*Status, *Verdict) if "_" in one.value)
_OF_KOPT = (
    rf"\bkopt\b|\b({_STATUSES}|quarantined)\b|\b(status|verdict)\b"
    r"|\b(tune_where|tensor_maps|max_registers|row_axis|problem\.yaml|oracle|tune values?)\b"
    r"|\b(launch|candidate) header\b|\bheader keys?\b|\bin the header\b|\bpdl: ?true\b"
)
"""What no library has: kopt's name, its statuses, keys of its headers and problems."""
_BEGINNING = (
    r"\b(get(ting)? started|quick ?start|first (hour|steps)|tutorial|how to (begin|start))\b"
)
_TUTORIAL = "docs/tutorial.md"
_MEANT = (
    (r"\b(own|new) (problem|op|operator|kernel|function)\b", ("problem.yaml", "oracle.py")),
    (r"\bcustom (op|operator)\b", ("problem.yaml", "torch_reference")),
)
"""What a newcomer's question is about, by what the manual calls it."""
_MOSTLY = 0.5
"""The least share of words that are no names of code; `PyTorch` looks like one."""
_NEAR_THE_TOP = (1, 3)
"""Places of two pages, from 0: where code is meant after all, it is first."""
_AT_THE_TOP = (0, 1, 3)
"""Places of three where nothing but kopt can be meant."""


def with_manual(
    best: Sequence[PageCandidate], pages: Sequence[PageCandidate], sought: QueryWords
) -> list[PageCandidate]:
    """Return `best` with `pages` of the manual near its top, unless some are there."""
    found = list(best)
    is_of_kopt = bool(re.search(_OF_KOPT, sought.text, re.IGNORECASE)) and not sought.libraries
    is_asked = is_of_kopt or (sought.prose >= _MOSTLY and _asks(sought.text))
    if not found or not is_asked:
        return found
    if _asks_how_to_begin(sought):
        tutorial = [
            replace(one, score=found[0].score) for one in pages if one.facts.path == _TUTORIAL
        ]
        taken = [one.place for one in tutorial]
        found = [*tutorial, *(one for one in found if one.place not in taken)]
    places = _AT_THE_TOP if is_of_kopt else _NEAR_THE_TOP
    for wanted, place in enumerate(places, start=1):
        top = found[: place + 1]
        page = next((one for one in pages if all(one.place != here.place for here in top)), None)
        if page is None or sum(one.facts.source == MANUAL for one in top) >= wanted:
            continue
        found = [one for one in found if one.place != page.place]
        at = min(place, len(found))
        beside = found[max(at - 1, 0)] if found else page
        found.insert(at, replace(page, score=beside.score))
    return found


def _asks(text: str) -> bool:
    """Return whether the manual may be meant."""
    asked = (_ABOUT_KOPT, _BEGINNING, *(pattern for pattern, _names in _MEANT))
    return any(re.search(pattern, text, re.IGNORECASE) for pattern in asked)


def _asks_how_to_begin(sought: QueryWords) -> bool:
    """Return whether kopt's tutorial is meant, and not that of a library that the query names."""
    return not sought.libraries and bool(re.search(_BEGINNING, sought.text, re.IGNORECASE))


def manual_pages(own: Collection, sought: QueryWords, filters: Filters) -> list[PageCandidate]:
    """Return the sections of the manual that fit best, one a page, best first.

    Who asks how to begin gets the first section of the tutorial, whatever its words.
    """
    meant = [
        name
        for asked, names in _MEANT
        if re.search(asked, sought.text, re.IGNORECASE)
        for name in names
    ]
    phrases = list(dict.fromkeys((*sought.terms, *sought.phrases, *query_terms(" ".join(meant)))))
    only = replace(filters, sources=(MANUAL,))
    if not phrases or not filters.admits(MANUAL):
        return []
    scored = own.by_words(phrases, only, own)[: 4 * len(_AT_THE_TOP)]
    if _asks_how_to_begin(sought):
        beginning = own.by_uid(own.uids(f"{MANUAL}:{_TUTORIAL}#")[:1], only)
        scored = [*((chunk_id, 0.0) for chunk_id in beginning), *scored]
    by_id = {facts.chunk_id: facts for facts in own.facts(chunk_id for chunk_id, _ in scored)}
    by_path: dict[str, PageCandidate] = {}
    for chunk_id, score in scored:
        facts = by_id[chunk_id]
        by_path.setdefault(facts.path, PageCandidate((0, facts.first), own, facts, score))
    return list(by_path.values())[: len(_AT_THE_TOP)]
