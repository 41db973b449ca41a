"""What a kernel does, how, and what that spares, in one sentence for each: `synopses/*.yaml`.

The glossary knows parts of names; what is computed with which technique is in no name. Written over
names, comments, parameters and tags of all kernels; indexed, and embedded, before the gloss.
"""

from functools import lru_cache
from importlib.resources import files
from pathlib import PurePosixPath

import yaml

from kopt.tools.docs.records import Chunk

SYNOPSES = tuple(
    f"synopses/{source}.yaml" for source in ("flashinfer", "vllm", "sglang", "cutlass", "torch")
)
"""Below this folder."""


def synopses_of(chunk: Chunk) -> list[str]:
    """Return what is written about the functions and types of `chunk`."""
    if chunk.language is None or chunk.symbol is None:
        return []
    stem = PurePosixPath(chunk.path).stem
    names = chunk.symbol.replace("::", ".").split(", ")
    found = (_synopses().get(f"{stem}:{name}") or _synopses().get(name) for name in names)
    return [synopsis for synopsis in found if synopsis]


@lru_cache(maxsize=1)
def _synopses() -> dict[str, str]:
    """Return synopses by whole names, of members with their owner, or by `file stem:name`."""
    folder = files("kopt.tools.docs.chunking")
    texts = (folder.joinpath(path).read_text("utf-8") for path in SYNOPSES)
    return {name: said for text in texts for name, said in yaml.safe_load(text).items()}
