"""What the parts of names mean, in words that people ask with: `glossary.yaml`.

A question about Euclidean lengths and a kernel called `l2norm_fwd` share no word. The glossary says
of a part, or of a run of parts, what it stands for; the words are indexed beside the code.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import PurePosixPath

from kopt.tools.docs.code_version import own_data
from kopt.tools.docs.records import Chunk

from .code_tokens import NAME_PART

_NAME = re.compile(r"[A-Za-z_]\w{2,}")
MOST_NAMES = 4
"""Names of a chunk of several small functions that are explained; more would say of each what the
others are."""
_MOST_PARTS = 6
"""Parts of a name that an entry may span."""


def gloss_of(chunk: Chunk) -> str:
    """Return what `chunk` does and what its names mean; nothing for prose and cards."""
    said = (*synopses_of(chunk), *_of_symbols(chunk), *_of_file(chunk))
    return "; ".join(dict.fromkeys(said))


def gloss_of_name(chunk: Chunk) -> str:
    """Return what `chunk` does and its names mean, or that of its file if they say nothing."""
    named = (*synopses_of(chunk), *_of_symbols(chunk))
    return "; ".join(dict.fromkeys(named or _of_file(chunk)))


def gloss_of_signature(chunk: Chunk) -> str:
    """Return what the names in the signature of `chunk` mean, above all those of parameters."""
    names = dict.fromkeys(_NAME.findall(chunk.signature))
    return "; ".join(dict.fromkeys(meaning for name in names for meaning in _meanings(name)))


def _of_symbols(chunk: Chunk) -> list[str]:
    if chunk.language is None or chunk.symbol is None:
        return []
    names = chunk.symbol.split(", ")[:MOST_NAMES]
    return [meaning for name in names for meaning in _meanings(name)]


def _of_file(chunk: Chunk) -> tuple[str, ...]:
    return () if chunk.language is None else _meanings(PurePosixPath(chunk.path).stem)


@lru_cache(maxsize=1 << 16)
def _meanings(name: str) -> tuple[str, ...]:
    """Return what the runs of parts of `name` mean, the longest first: they are most particular."""
    glossary = _glossary()
    parts = [part.lower() for part in NAME_PART.findall(name)]
    runs = (
        "".join(parts[begin : begin + count])
        for count in range(min(_MOST_PARTS, len(parts)), 0, -1)
        for begin in range(len(parts) - count + 1)
    )
    return tuple(dict.fromkeys(glossary[run] for run in runs if run in glossary))


@lru_cache(maxsize=1)
def _glossary() -> dict[str, str]:
    entries = own_data("words/glossary.yaml")
    return {entry.replace("_", ""): meaning for entry, meaning in entries.items()}


WRITTEN_OVER = {
    "flashinfer": "0.6.13",
    "vllm": "0.23.0",
    "sglang": "0.5.15",
    "cutlass": "4.2.0.0",
    "torch": "2.13.0",
}
"""Sources with the version whose code was read for its synopses: those of `library/pins.yaml`."""


def synopses_of(chunk: Chunk) -> list[str]:
    """Return what is written about the functions and types of `chunk`."""
    return [_synopses()[name] for name in _described(chunk)]


def synopses_without_code(chunks: Iterable[Chunk]) -> list[str]:
    """Return the names with a synopsis that no code of the libraries in `chunks` has.

    None unless all of WRITTEN_OVER are there: a synopsis may be about a copy in another library.
    """
    written = [chunk for chunk in chunks if chunk.source in WRITTEN_OVER]
    if {chunk.source for chunk in written} != WRITTEN_OVER.keys():
        return []
    found = {name for chunk in written for name in _described(chunk)}
    return [name for name in _synopses() if name not in found]


def _described(chunk: Chunk) -> list[str]:
    """Return the names under which synopses are written about what `chunk` holds."""
    if chunk.source not in WRITTEN_OVER or chunk.language is None or chunk.symbol is None:
        return []
    stem = PurePosixPath(chunk.path).stem
    spellings = ((f"{stem}:{name}", name) for name in chunk.symbol.replace("::", ".").split(", "))
    found = (next((one for one in both if one in _synopses()), None) for both in spellings)
    return [name for name in found if name]


@lru_cache(maxsize=1)
def _synopses() -> dict[str, str]:
    """Return synopses by whole names, of members with their owner, or by `file stem:name`."""
    loaded = (own_data(f"words/synopses/{source}.yaml") for source in WRITTEN_OVER)
    return {name: said for synopses in loaded for name, said in synopses.items()}
