"""Static vectors of cards and queries: WordLlama's token embeddings, out of the installed package.

Its own loader asks a model hub, so its two files are read here instead. Without the package there
are no vectors, and everything else works: `vector_model` returns None. The card of a query is the
query itself; a vector is the mean over its tokens, normalized.
"""

import importlib
import importlib.metadata
import importlib.util
import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PACKAGE = "wordllama"
DIMENSIONS = 256
NO_MODEL = "none"
WHAT_THE_EXTRA_ADDS = (
    "ranked by words alone: pip install 'kopt-mcp[docs]', then kopt docs build, adds likeness of"
    " meaning"
)
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_MOST_TOKENS = 1024
_BATCH = 512
_INT8_MAX = 127


@dataclass(frozen=True)
class VectorModel:
    """The embeddings of a vocabulary, and its tokenizer."""

    embeddings: "NDArray[np.float16]"
    """(tokens of the vocabulary, DIMENSIONS), mapped from the file."""
    tokenizer: Any
    """A `tokenizers.Tokenizer`; that package is untyped."""

    def rows(self, texts: Sequence[str]) -> list[bytes]:
        """Return for each text DIMENSIONS signed bytes; all 0 for a text without a token."""
        import numpy as np

        found: list[bytes] = []
        for begin in range(0, len(texts), _BATCH):
            encoded = self.tokenizer.encode_batch(
                list(texts[begin : begin + _BATCH]), add_special_tokens=False
            )
            for one in encoded:
                mean = self._mean(one.ids)
                peak = float(np.abs(mean).max())
                scaled = mean * (_INT8_MAX / peak) if peak else mean
                found.append(np.rint(scaled).astype(np.int8).tobytes())
        return found

    def query(self, text: str) -> "NDArray[np.float32] | None":
        """Return the unit vector of a query; None for one without a token."""
        import numpy as np

        mean = self._mean(self.tokenizer.encode(text, add_special_tokens=False).ids)
        length = float(np.linalg.norm(mean))
        return (mean / length).astype(np.float32) if length else None

    def _mean(self, tokens: Sequence[int]) -> "NDArray[np.float32]":
        import numpy as np

        if not tokens:
            return np.zeros(DIMENSIONS, np.float32)
        mean: NDArray[np.float32] = self.embeddings[list(tokens)].mean(axis=0, dtype=np.float32)
        return mean


@lru_cache(maxsize=1)
def model_name() -> str:
    """Return what tells these vectors from those of another model; NO_MODEL without the extra.

    Nothing is loaded.
    """
    try:
        return f"{PACKAGE} {importlib.metadata.version(PACKAGE)} {DIMENSIONS}"
    except importlib.metadata.PackageNotFoundError:
        return NO_MODEL


@lru_cache(maxsize=1)
def vector_model() -> VectorModel | None:
    """Return the model; None if its package is not installed or cannot be loaded."""
    try:
        import numpy as np

        spec = importlib.util.find_spec(PACKAGE)
        if spec is None or not spec.submodule_search_locations:
            return None
        folder = Path(spec.submodule_search_locations[0])
        tokenizer = importlib.import_module("tokenizers").Tokenizer.from_file(
            str(folder / _TOKENIZER)
        )
        tokenizer.no_padding()
        tokenizer.enable_truncation(_MOST_TOKENS)
        weights = folder / _WEIGHTS
        with weights.open("rb") as file:
            header_bytes = int.from_bytes(file.read(8), "little")
            (facts,) = json.loads(file.read(header_bytes)).values()
        begin = 8 + header_bytes + int(facts["data_offsets"][0])
        shape = (int(facts["shape"][0]), DIMENSIONS)
        embeddings = np.memmap(weights, np.float16, "r", begin, shape)
    except (ImportError, OSError, ValueError, KeyError):
        return None
    return VectorModel(embeddings, tokenizer)


@dataclass(frozen=True)
class ChunkVectors:
    """The vectors of some or all chunks of one index, ready to be compared."""

    ids: "NDArray[np.int32]"
    """Chunk ids, ascending."""
    matrix: "NDArray[np.float32]"
    """(chunks, DIMENSIONS), unit rows or 0; row i is of the chunk with the id `ids[i]`."""

    def nearest(
        self, query: "NDArray[np.float32]", allowed: "array[int] | None", most: int
    ) -> list[tuple[int, float]]:
        """Return (id, cosine) of the `most` nearest of all or of those allowed, best first."""
        import numpy as np

        ids, rows = self.ids, self.matrix
        if allowed is not None:
            kept = np.isin(ids, np.frombuffer(allowed, np.int32), assume_unique=True)
            ids, rows = ids[kept], rows[kept]
        cosines = rows @ query
        count = min(most, len(cosines))
        if not count:
            return []
        best = np.argpartition(-cosines, count - 1)[:count]
        best = best[np.lexsort((best, -cosines[best]))]
        return [(int(n), float(c)) for n, c in zip(ids[best], cosines[best], strict=True)]


def chunk_vectors(rows: bytes, ids: bytes | None = None) -> ChunkVectors | None:
    """Return the vectors that an index holds, DIMENSIONS signed bytes each; None for none.

    `ids` are those of their chunks, ascending, 32 bits each; None if they are 1, 2, 3 and so on.
    """
    if not rows:
        return None
    import numpy as np

    matrix = np.frombuffer(rows, np.int8).reshape(-1, DIMENSIONS).astype(np.float32)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix /= np.where(lengths == 0, np.float32(1), lengths)
    numbers = np.arange(1, len(matrix) + 1, dtype=np.int32)
    return ChunkVectors(numbers if ids is None else np.frombuffer(ids, np.int32), matrix)
