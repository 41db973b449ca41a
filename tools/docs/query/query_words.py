"""A query as words: what the indexes are asked for, what none of them has, what that resembles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kopt.config.near_matches import close_names
from kopt.tools.docs.indexing.collection import Collection
from kopt.tools.docs.records import UnknownWord
from kopt.tools.docs.words.code_tokens import exact_term, query_names, query_terms
from kopt.tools.docs.words.lexicon import expansions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_TERMS = 64
NEAREST = 3
_MOST_UNKNOWN = 5
_LONGEST_WORD = 60
_LIBRARIES = {
    "apex": "apex",
    "cutlass": "cutlass",
    "flashattention": "flash_attn",
    "flashinfer": "flashinfer",
    "liger": "liger",
    "lmdeploy": "lmdeploy",
    "pytorch": "torch",
    "quack": "quack",
    "sglang": "sglang",
    "torch": "torch",
    "vllm": "vllm",
}
"""Sources by what people call them; not `triton` and `cuda`, in which kernels of all are
written."""


@dataclass(frozen=True)
class QueryWords:
    """A query as the indexes are asked, against what there is."""

    text: str
    """The query as it was asked, to find the definition of a symbol."""
    terms: Sequence[str]
    """Index terms of all words; what an absent name stands for takes its place."""
    prose: float
    """Share of its words that are no names of code."""
    names: Sequence[str] = ()
    """Terms that stand for whole names; none if the query has only words."""
    phrases: Sequence[str] = ()
    """Synonyms from the lexicon, as index phrases."""
    known: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """What may have matched, as it is shown, with the index terms that say so: any one of them."""
    libraries: frozenset[str] = frozenset()
    """Sources of production code that the query names."""
    unknown: Sequence[str] = ()
    """Names that no document has and that stand for nothing."""
    tags: Sequence[str] = ()
    """Tags of what it is about, as code is tagged."""
    vector: "NDArray[np.float32] | None" = None
    """Vector of the whole query; None without a model."""


def query_words(query: str, collections: Sequence[Collection]) -> QueryWords:
    """Return what `query` asks of `collections`."""
    names = [name for name in query_names(query)[:MOST_TERMS] if query_terms(name)]
    absent = [name for name in names if not _is_known(name, collections)]
    stand_ins = [phrase for name in absent for phrase in expansions(name)]
    exact = [term for name in names if (term := exact_term(name))]
    phrases = expansions(query)
    shown = {text: frozenset([phrase]) for phrase, text in phrases.items() if " " not in phrase}
    return QueryWords(
        text=query,
        terms=[*query_terms(query)[:MOST_TERMS], *stand_ins],
        names=[*exact, *stand_ins] if exact else [],
        prose=1 - len(exact) / max(1, len(names)),
        phrases=list(phrases),
        known={name: frozenset(query_terms(name)) for name in names} | shown,
        libraries=frozenset(
            _LIBRARIES[word] for name in names if (word := name.lower()) in _LIBRARIES
        ),
        unknown=[name for name in absent if not expansions(name)],
    )


def unknown_words(sought: QueryWords, collections: Sequence[Collection]) -> tuple[UnknownWord, ...]:
    """Return the first names that no document has, with the nearest words that there are."""
    return tuple(
        UnknownWord(word=name[:_LONGEST_WORD], nearest=nearest_words(name, collections))
        for name in sought.unknown[:_MOST_UNKNOWN]
    )


def _is_known(name: str, collections: Sequence[Collection]) -> bool:
    """Say whether any document has this word, or this very name."""
    exact = exact_term(name)
    terms = [exact] if exact else query_terms(name)
    return any(one.has(terms) for one in collections)


def nearest_words(name: str, collections: Sequence[Collection]) -> tuple[str, ...]:
    """Return the words of documents that are spelled most like `name`, in lower case."""
    word = name.lower()[:_LONGEST_WORD]
    words = dict.fromkeys(like for one in collections for like in one.words_like(word))
    return close_names(word, words, NEAREST)
