"""What a kernel does, how, and what that spares, in one sentence for each: `synopses/*.yaml`.

The glossary knows parts of names; what is computed with which technique is in no name. Written over
names, comments, parameters and tags of all kernels; indexed, and embedded, before the gloss.
They hold for the versions of `WRITTEN_OVER`; a build says which of them have lost their code. They
are about no other source: what has the same name in a user's folder may do something else.
"""

from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from pathlib import PurePosixPath

import yaml

from kopt.tools.docs.records import Chunk

WRITTEN_OVER = {
    "flashinfer": "0.6.13",
    "vllm": "0.23.0",
    "sglang": "0.5.15",
    "cutlass": "4.2.0.0",
    "torch": "2.13.0",
}
"""By source, the version whose code was read for its synopses: those of `library/pins.yaml`."""
SYNOPSES = tuple(f"synopses/{source}.yaml" for source in WRITTEN_OVER)
"""Below this folder."""


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
    folder = files("kopt.tools.docs.chunking")
    texts = (folder.joinpath(path).read_text("utf-8") for path in SYNOPSES)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the latter takes ten times as long
    loaded = (yaml.load(text, Loader=loader) for text in texts)
    return {name: said for synopses in loaded for name, said in synopses.items()}
