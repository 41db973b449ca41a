"""Every constant of the ranking in one place, each with where it comes from.

"Development set": docs/retrieval.md; "prototype": 40 to 52 other questions over the same libraries,
measured before this code; "own set": `tests/tools/docs/queries.yaml`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

KIND_PRIOR: Mapping[str, float] = {
    "plan": 0.92,
    "struct": 0.92,
    "class": 0.85,
    "gap": 0.85,
    "overview": 0.85,
    "host": 0.72,
    "decl": 0.7,
}
"""Factor of a kind; 1 for one that is not named. Code that runs on the device is what is asked for.
Of host code .65, .72, .8 give .594, .592, .582 NDCG@10 on the drawn questions and .759, .770, .771
on the chosen ones."""


OWN_CARDS = frozenset({"entry", "intrinsic", "note", "gpu", "device"})
"""Kinds of kopt's own documents that define what they are called."""
OWN_PRIOR: Mapping[str, float] = {
    "problem": 0.6,
    "plan": 0.7,
    "kernel": 0.7,
    "overview": 0.8,
    "section": 0.8,
    "intrinsic": 0.75,
    "note": 0.75,
    "entry": 0.75,
    "device": 0.75,
    "gpu": 0.75,
}
"""Factor of a kind of kopt's own documents beside production code. A problem is named in order to
see how others solved it, not for its text or its slow reference kernel. A card or a note is worth
a place in the first five, not the first: with 1 the development set loses .08 MRR."""


@dataclass(frozen=True)
class Weights:
    """How lists are made, fused and thinned."""

    fields: tuple[float, float, float, float, float, float] = (4.0, 2.0, 1.0, 1.0, 0.5, 1.5)
    """Weights of symbol, place, comment, tags, code, gloss in BM25F. Development set: of the code
    .3 to .6 are within .01, and 1 loses .03 MRR@10, because a word somewhere in a body says little;
    of the symbol 3 and 4 are within .01. Of the gloss .75, 1, 1.5 give .574, .578, .600 NDCG@10 on
    the drawn questions and .755, .756, .752 on the others (library alone), none .257 and .738."""
    term_saturation: float = 1.2
    """k1 of BM25: how soon further occurrences say nothing new. Usual; .8 to 2 within .02."""
    length_share: float = 0.5
    """b of BM25F in symbol, comment and code; 0 in place, tags and gloss. Development set: .30 to
    .65 are within .01 NDCG@10; b = .75 over the length of all fields, as FTS5 has it, loses .05."""
    symbol_terms: float = 6.0
    comment_terms: float = 15.0
    code_terms: float = 300.0
    """Usual lengths in terms: means over the library of 2026."""
    depth: int = 800
    """Length of each list. Development set: 200, 400, 800, 1500 give .674, .686, .688, .692
    NDCG@10: a kernel that is far down in one list is often near the top of another."""
    kept: int = 300
    """Length of the fused list, which is weighed and picked from."""
    rank_offset: int = 60
    """k of reciprocal rank fusion (Cormack, Clarke, Buettcher, SIGIR 2009); prototype: 10, 30, 60,
    120 give .615, .663, .679, .676."""
    words: float = 1.0
    """Weight of the list for all words of the query."""
    exact: float = 1.0
    """Weight of the list of what defines the very name that is asked for. Not measured: it decides
    only among definitions, which `exact_symbol` puts first."""
    names: float = 1.0
    """Weight of the list for whole names, in kopt's own documents alone. Own set."""
    expansions: float = 0.5
    """Weight of the list with synonyms. Prototype and own set."""
    meaning: float = 0.4
    """Weight of the list by cosine of cards. Development set, 186 questions, beside the synopses:
    .3, .4, .5 give .804, .806, .798 MRR@10 and .667, .670, .672 NDCG@10; without that list .6, .4
    give .778, .788 and .660, .664."""
    synopsis: float = 0.4
    """Weight of the list by cosine of what functions are said to do, for a question in prose; it
    weighs as much less as the question consists of names of code, which are no sentences. Equal
    cosines, which pieces and copies have, share a rank. Development set: 0, .3, .4, .5 give .788,
    .797, .806, .801 MRR@10 and .664, .670, .670, .666 NDCG@10; without regard to names .790 NDCG@10
    for questions that name code instead of .827."""
    subject: float = 1.0
    """Weight of the list by tags in common, at most: with s for the sum that the best of it has in
    common, it weighs subject * s / (s + subject_doubt), .4 for one rare tag, .8 for five.
    Development set, beside the synopses: .75, .9, 1, 1.1, 1.35 give .814, .815, .818, .815, .807
    MRR@10, .758, .798, .794, .794, .790 of them on goals.yaml and .748, .738, .745, .743, .737 on
    the drawn ones."""
    subject_doubt: float = 6.0
    """Development set: 6 and 8 give .592 and .591 NDCG@10 on the drawn questions, .336 and .329 on
    goals.yaml; 3 and 4 less than 6 on the drawn ones."""
    tag_decay: float = 0.1
    """How much less a tag says than the one before it; .05 to .2 within .002, without .01 less."""
    remote: float = 1.0
    """Weight of Pinecone's list: as much as the local one of its kind. Not measured."""
    remote_depth: int = 30
    """Length of Pinecone's list: what one call reranks. Not measured."""
    kind_prior: Mapping[str, float] = field(default_factory=lambda: KIND_PRIOR)
    """Prototype: without it .642 instead of .679."""
    quality_exponent: float = 0.5
    """Exponent of a source's quality. Prototype: with rank fusion .85 moves a hit by eleven
    ranks."""
    file_saturation: float = 0.7
    """The n-th further hit of a file counts this to the n. Development set: .5, .7, .8 give .664,
    .665, .661 NDCG@10 and .893, .911, .911 S@5: headers hold many kernels of one family."""
    named_library: float = 1.5
    """Factor of chunks of a library that the query names. Development set: 1.2 gives .005 NDCG@10
    less, 2 the same."""
    own_file_saturation: float = 0.8
    """`file_saturation` among kopt's own documents, whose pages hold many subjects. Own set."""
    own_saturation: float = 0.5
    """The n-th further hit of kopt's own documents beside production code: about two of ten."""
    exact_symbol: float = 3.0
    """Factor of what defines the name that is the whole query: it comes first."""
    own_exact_symbol: float = 2.0
    """Further factor for OWN_CARDS: kopt's card of an intrinsic, a status or a key is first."""
    own_prior: Mapping[str, float] = field(default_factory=lambda: OWN_PRIOR)
    """Factors of kinds of kopt's own documents beside production code."""


WEIGHTS = Weights()
