"""Which chunks answer a query, best first: lists by words and by meaning, fused by rank.

The lists and the formula are in docs/retrieval.md. Without a library a list of whole names stands
in for those that hold its code alone.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from kopt.kernels.status import Status
from kopt.tools.docs.indexing.collection import ChunkFacts, Collection
from kopt.tools.docs.indexing.entries import symbol_name
from kopt.tools.docs.indexing.filters import Filters
from kopt.tools.docs.indexing.postings import Scored
from kopt.tools.docs.weights import OWN_CARDS, WEIGHTS
from kopt.tools.docs.words.code_tokens import query_names

from .candidates import PageCandidate, Place
from .query_words import QueryWords


class RankedList(NamedTuple):
    """One opinion about what is best."""

    weight: float
    places: Sequence[Place]
    """Best first."""
    ranks: Sequence[float]
    """Rank of each place, from 1."""


def in_order(weight: float, places: Sequence[Place]) -> RankedList:
    """Return a list whose places have the ranks 1, 2, 3 and so on."""
    return RankedList(weight, places, range(1, len(places) + 1))


def with_ties(weight: float, scored: Sequence[tuple[Place, float]]) -> RankedList:
    """Return a list in which equal scores share the mean of their ranks.

    Hundreds of chunks may have the tags of a question alike; their order says nothing.
    """
    ranks: list[float] = []
    for _score, group in groupby(scored, key=lambda one: one[1]):
        size = len(list(group))
        ranks += [len(ranks) + (size + 1) / 2] * size
    return RankedList(weight, [place for place, _score in scored], ranks)


def fused(lists: Iterable[RankedList]) -> dict[Place, float]:
    """Return the best places with the sums of their reciprocal ranks."""
    scores: dict[Place, float] = {}
    for weight, places, ranks in lists:
        for place, rank in zip(places, ranks, strict=True):
            scores[place] = scores.get(place, 0.0) + weight / (WEIGHTS.rank_offset + rank)
    best = sorted(scores.items(), key=lambda one: (-one[1], one[0]))
    return dict(best[: WEIGHTS.kept])


def ranked(
    collections: Sequence[Collection],
    sought: QueryWords,
    filters: Filters,
    most: int,
    remote: Callable[[], Sequence[str]] = tuple,
) -> tuple[int, list[PageCandidate]]:
    """Return how many match, as far as lists go, and the `most` best of them, best first.

    Args:
        collections: kopt's own documents, and the library.
        sought: What is asked.
        filters: What may be an answer.
        most: Number of answers at most.
        remote: Gives the uids of Pinecone's hits, best first; waits for them.
    """
    lists = _by_words(collections, sought, filters)
    has_words = any(one.places for one in lists)
    exact = [
        (number, chunk_id)
        for number, one in enumerate(collections)
        for name in _names_meant(sought)
        for chunk_id in one.by_name(name, filters)
    ]
    lists.append(in_order(WEIGHTS.exact, exact))
    if not collections[-1].is_own:
        lists += _of_library(collections, sought, filters, has_words)
        found = collections[-1].by_uid(remote(), filters)
        last = len(collections) - 1
        lists.append(in_order(WEIGHTS.remote, [(last, chunk_id) for chunk_id in found]))
    candidates = _candidates(collections, fused(lists), frozenset(exact), sought.libraries)
    return len(candidates), _picked(candidates, most)


def _names_meant(sought: QueryWords) -> list[str]:
    """Return the names whose definition the query asks for: all of it, or a status in it."""
    words = query_names(sought.text)
    whole = [sought.text, *(words if len(words) == 1 else ())]
    statuses = [word for word in words if "_" in word and word in set(Status)]
    return list(dict.fromkeys(symbol_name(one) for one in (*whole, *statuses)))


def _by_words(
    collections: Sequence[Collection], sought: QueryWords, filters: Filters
) -> list[RankedList]:
    lists = [in_order(WEIGHTS.words, _merged_by_words(collections, sought.terms, filters))]
    if sought.names and len(collections) == 1 and collections[0].is_own:
        lists.append(in_order(WEIGHTS.names, _merged_by_words(collections, sought.names, filters)))
    if sought.phrases:
        both = [*sought.terms, *sought.phrases]
        lists.append(in_order(WEIGHTS.expansions, _merged_by_words(collections, both, filters)))
    return lists


def _merged_by_words(
    collections: Sequence[Collection], phrases: Iterable[str], filters: Filters
) -> list[Place]:
    """Return one list of all collections, with the word statistics of the last."""
    distinct = list(dict.fromkeys(phrases))
    if not distinct:
        return []
    return _merged([one.by_words(distinct, filters, collections[-1]) for one in collections])


def _of_library(
    collections: Sequence[Collection], sought: QueryWords, filters: Filters, has_words: bool
) -> Iterator[RankedList]:
    """Yield the lists of the library alone; `has_words`: whether it has any of the query."""
    last = len(collections) - 1
    library = collections[last]

    def placed(scored: Scored) -> list[tuple[Place, float]]:
        return [((last, chunk_id), score) for chunk_id, score in scored]

    by_subject = library.by_subject(sought.tags, filters)
    most = max((score for _chunk_id, score in by_subject), default=0.0)
    yield with_ties(WEIGHTS.subject * most / (most + WEIGHTS.subject_doubt), placed(by_subject))
    # By meaning something is always nearest; of words that nothing has it is nothing.
    if sought.vector is not None and has_words:
        near = placed(library.by_meaning(sought.vector, filters))
        yield in_order(WEIGHTS.meaning, [place for place, _cosine in near])
        said = placed(library.by_synopsis(sought.vector, filters))
        # Equal vectors may differ in the last bit of their cosines.
        said = [(place, round(cosine, 6)) for place, cosine in said]
        yield with_ties(WEIGHTS.synopsis * sought.prose, said)


def _merged(lists: Sequence[Scored]) -> list[Place]:
    scored = [
        (score, -number, -chunk_id)
        for number, found in enumerate(lists)
        for chunk_id, score in found
    ]
    best = sorted(scored, reverse=True)[: WEIGHTS.depth]
    return [(-number, -chunk_id) for _score, number, chunk_id in best]


def _candidates(
    collections: Sequence[Collection],
    scores: dict[Place, float],
    exact: frozenset[Place],
    libraries: frozenset[str],
) -> list[PageCandidate]:
    """Return one candidate for each function, by its best piece."""
    best: dict[Place, PageCandidate] = {}
    has_library = not collections[-1].is_own
    for number, one in enumerate(collections):
        for facts in one.facts(at for where, at in scores if where == number):
            place = (number, facts.chunk_id)
            score = scores[place] * _prior(facts)
            if one.is_own and has_library:
                score *= WEIGHTS.own_prior.get(facts.kind, 1.0)
            if facts.source in libraries:
                score *= WEIGHTS.named_library
            if place in exact:
                is_card = one.is_own and has_library and facts.kind in OWN_CARDS
                score *= WEIGHTS.exact_symbol * (WEIGHTS.own_exact_symbol if is_card else 1.0)
            function = (number, facts.first)
            known = best.get(function)
            if known is None or score > known.score:
                best[function] = PageCandidate(function, one, facts, score)
    return list(best.values())


def _prior(facts: ChunkFacts) -> float:
    prior = WEIGHTS.kind_prior.get(facts.kind, 1.0)
    return float(prior * facts.quality**WEIGHTS.quality_exponent)


def _picked(candidates: Sequence[PageCandidate], most: int) -> list[PageCandidate]:
    """Pick greedily; each hit of a file, and of kopt's own documents, makes its next count less."""
    left = sorted(candidates, key=lambda one: (-one.score, one.place))
    is_mixed = len({candidate.collection.is_own for candidate in candidates}) > 1
    files: Counter[tuple[str, str]] = Counter()
    own = 0
    picked: list[PageCandidate] = []

    def worth(one: PageCandidate) -> float:
        times = files[one.facts.source, one.facts.path]
        if not one.collection.is_own:
            return float(one.score * WEIGHTS.file_saturation**times)
        among_own = float(one.score * WEIGHTS.own_file_saturation**times)
        return among_own * WEIGHTS.own_saturation**own if is_mixed else among_own

    while left and len(picked) < most:
        best = max(left, key=worth)
        left.remove(best)
        picked.append(replace(best, score=round(worth(best), 5)))
        files[best.facts.source, best.facts.path] += 1
        own += best.collection.is_own
    return picked
