"""Text and code as index terms: identifiers give themselves and their parts, words their stem.

`cp.async.bulk` gives cp_async_bulk, cp_async, cp, async, bulk; `float2_to_e2m1x2` itself, float2,
e2m1x2 and e2m1; sm_100a also sm100. Documents and queries go through the same functions.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

_WORD = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*(?:\.\d[a-z])?|\d\w*")
_CAMEL = re.compile(r"CU(?=[a-z])|[A-Z][A-Z0-9]*(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z0-9]+|[^\W_]+")
_ARCH = re.compile(r"(?:sm|compute)_?(\d{2,3})[af]?", re.IGNORECASE)
_COMPOSED = re.compile(r"[._]|[a-z][A-Z]")
_COMPOUND_PARTS = 5
_LONGEST_NAME = 120

_FUNCTION_WORDS = """
a across all also an and any are as at be been between both but by can could did do does each every
for from get give had has have how i if in into is it its me my need no not of on one only or other
our over please same should show so some than that the their them then there these they this to two
use used uses using via want was we were what when where which who why will with within without
would you your
"""
_TRUE_OF_ALL = """
kernel kernels cuda gpu code example examples function functions implement implementation nvidia
write
"""
STOP_WORDS = frozenset(f"{_FUNCTION_WORDS} {_TRUE_OF_ALL}".split())
"""Words that queries are searched without: English function words and words that are true of every
document."""

_SPELLING = """
auto bool case char class const constexpr continue default double else enum extern false inline
namespace nullptr operator private public return signed sizeof size_t static static_cast struct
switch template true typedef typename unsigned using void volatile while
"""
_KEYWORDS = frozenset(_SPELLING.split())
"""Keywords of C++ that are not indexed: they say nothing about what code does."""


def document_terms(text: str) -> list[str]:
    """Return the index terms of a document, in order, repetitions included."""
    return [term for name in _names(text) for term in _terms(name) if _is_telling(term)]


def terms_in(text: str, sought: frozenset[str]) -> frozenset[str]:
    """Return which of the `sought` index terms a document has."""
    names = frozenset(_names(text))
    return frozenset(term for name in names for term in _terms(name) if term in sought)


def query_terms(text: str) -> list[str]:
    """Return the distinct terms of a query in order, without words that say nothing."""
    terms = [term for name in query_names(text) for term in _terms(name) if _is_telling(term)]
    halves = {_element_of(term) for term in terms}  # e2m1x2 does not ask for all of e2m1
    return list(dict.fromkeys(term for term in terms if term not in halves))


def exact_term(name: str) -> str | None:
    """Return the term of a whole composed name: cp_async_bulk of cp.async.bulk; None for a word."""
    return _terms(name)[0] if _COMPOSED.search(name.strip("_")) else None


def query_names(text: str) -> list[str]:
    """Return the distinct words and names of a query as they are written, without stop words."""
    return list(dict.fromkeys(name for name in _names(text) if name.lower() not in STOP_WORDS))


def plain_words(text: str) -> list[str]:
    """Return the stems of the words and parts of names in `text`: what phrases are matched on."""
    return [stem for name in _names(text) for stem in _stems(name)]


def phrase_of(text: str) -> str:
    """Return `text` as consecutive index terms: one compound for a name, stems for words."""
    names = list(_names(text))
    return " ".join(_terms(name)[0] for name in names)


def surface_words(text: str) -> Iterator[str]:
    """Yield the words of `text` as they are written, in lower case: for suggestions."""
    return (name.lower() for name in _names(text))


def arch_tag(text: str) -> str | None:
    """Return `sm90` for sm_90a, sm_90, SM90 and compute_90; None if it is no architecture."""
    match = _ARCH.fullmatch(text.strip())
    return f"sm{match[1]}" if match else None


def _names(text: str) -> Iterator[str]:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return (match[0][:_LONGEST_NAME] for match in _WORD.finditer(text))


def _is_telling(term: str) -> bool:
    return term not in _KEYWORDS and (len(term) > 1 or not term.isalpha())


@lru_cache(maxsize=65536)
def _terms(name: str) -> tuple[str, ...]:
    """Return the terms of one name, the most particular first; the stem alone of a plain word."""
    parts = [part.strip("_") for part in name.split(".")]
    parts = [part for part in parts if part]
    terms: list[str] = []
    if len(parts) > 1:
        lowered = [part.lower() for part in parts[:_COMPOUND_PARTS]]
        terms += ["_".join(lowered[:count]) for count in range(len(lowered), 1, -1)]
    for part in parts:
        terms += _part_terms(part)
    return tuple(dict.fromkeys(terms)) or (name.lower(),)


def _part_terms(part: str) -> list[str]:
    if _is_plain(part):
        return [stem(part.lower())]
    if part[0].isdigit():  # 128x4, 2D, 0xff
        return [part.lower()]
    terms = [part.lower()]
    if arch := arch_tag(part):
        return [*terms, arch]
    for piece in part.split("_"):
        if not piece:
            continue
        terms.append(stem(piece.lower()))
        terms += [stem(word.lower()) for word in _CAMEL.findall(piece)]
        if element := _element_of(piece.lower()):
            terms.append(element)
    return terms


@lru_cache(maxsize=65536)
def _stems(name: str) -> tuple[str, ...]:
    stems: list[str] = []
    for part in name.split("."):
        if arch := arch_tag(part):
            stems.append(arch)
            continue
        for piece in part.split("_"):
            stems += [stem(word.lower()) for word in _CAMEL.findall(piece)]
    return tuple(stems)


def _element_of(term: str) -> str | None:
    """Return the e2m1 of e2m1x2; None for other terms."""
    element, _x, count = term.rpartition("x")
    return element if count.isdigit() and not element.isdigit() and element else None


def _is_plain(part: str) -> bool:
    return part.isalpha() and (part[1:].islower() or part.isupper() or len(part) == 1)


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return `word` without the endings that only grammar asks for; British is American."""
    if not word.isalpha() or len(word) < 4:
        return word
    for ending, least in (("ing", 6), ("ed", 6), ("s", 4)):
        if word.endswith(ending) and len(word) >= least and not word.endswith(("eed", "ss", "us")):
            word = word[: -len(ending)]
            if ending != "s" and len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls":
                word = word[:-1]  # mapping, running
            break
    for ending in ("ation", "ion"):
        if word.endswith(ending) and len(word) >= len(ending) + 4:
            word = word[: -len(ending)]
            break
    if word.endswith("e") and len(word) >= 5:
        word = word[:-1]
    return f"{word[:-2]}iz" if word.endswith("is") and len(word) >= 6 else word


NAME_PART = re.compile(r"[A-Z][A-Z0-9]*(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z0-9]+")
"""`WarpReduceSum_fp16` has Warp, Reduce, Sum, fp16, and `NVFP4Quantize` NVFP4 and Quantize: digits
stay with the letters before them."""
