"""Cards say in words what a chunk is; repetitions are one chunk with all its places."""

import pytest

from kopt.tools.docs.chunking.duplicates import merged
from kopt.tools.docs.chunking.library_chunks import chunker_version
from kopt.tools.docs.indexing.entries import MOST_TAGS, card_of
from kopt.tools.docs.records import Chunk
from support.chunked_files import chunk_of, chunks_of, library_file

KERNEL = """// {comment}
__global__ void flashDecode{n}(float* out, float const* in) {{
  constexpr int kHeadDim = {n};
  __shared__ float tile[kHeadDim];
  for (int i = threadIdx.x; i < kHeadDim; i += blockDim.x) tile[i] = in[i];
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x] * {scale}f;
}}
"""


def _kernel(path: str, n: int = 64, comment: str = "Decodes.", scale: str = "2.") -> Chunk:
    (chunk,) = chunks_of(KERNEL.format(n=n, comment=comment, scale=scale), path)
    return chunk


def test_card_has_words_meaning_tags_comment_path_and_signature() -> None:
    card = card_of(_kernel("csrc/attention/decode_kernels.cu"))
    words, meaning, tags, _rest = card.split(". ", 3)
    assert words == "flash decode64"
    assert "without score matrix" in meaning
    assert tags.startswith("attention decode; ")
    assert "Decodes. csrc attention decode kernels" in card
    assert card.endswith("void flashDecode64(float* out, float const* in)")


def test_card_is_short_whatever_the_chunk_holds() -> None:
    long = _kernel("a/" * 400 + "a.cu", comment="many words " * 200)
    tagged = long.model_copy(update={"tags": tuple(f"tag {n}" for n in range(90))})
    card = card_of(tagged)
    assert len(card) < 1200
    assert f"tag {MOST_TAGS - 1}." in card


def test_same_code_is_one_chunk_with_all_places() -> None:
    other = _kernel("b.cu", comment="Other words.").model_copy(update={"source": "zeta"})
    found = merged([_kernel("a.cu"), _kernel("b.cu", comment="Longer."), other])
    assert [chunk.path for chunk in found] == ["a.cu"]
    assert found[0].also_at == ("b.cu:1", "zeta:b.cu:1")


def test_instantiations_that_differ_in_numbers_are_one_chunk() -> None:
    found = merged([_kernel(f"decode_{n}.cu", n) for n in (64, 128, 256)])
    assert [chunk.symbol for chunk in found] == ["flashDecode64"]
    assert found[0].also_at == ("decode_128.cu:1", "decode_256.cu:1")


def test_numbers_within_one_file_are_kept_apart() -> None:
    text = "\n".join(KERNEL.format(n=n, comment="A.", scale="2.") for n in (64, 128))
    assert len(merged(chunks_of(text))) == 2


def test_short_code_with_other_numbers_is_not_the_same() -> None:
    text = "__device__ int wait{0}() {{\n  bar(0);\n  bar({0});\n  return {0};\n}}\n"
    chunks = [chunk_of(f"wait{n}", text.format(n), f"{n}.cu") for n in (1, 2)]
    assert merged(chunks) == chunks


def test_code_that_differs_in_more_than_numbers_is_kept() -> None:
    chunks = [_kernel("a.cu"), _kernel("b.cu", scale="kScale * 2.")]
    assert merged(chunks) == chunks


def test_chunk_carries_version_licence_and_weight_of_its_library() -> None:
    chunk = _kernel("a.cu")
    facts = library_file("a.cu", "").source
    assert (chunk.source, chunk.version, chunk.license) == ("acme", "1.2.3", "MIT")
    assert (chunk.quality, chunk.uid) == (facts.quality, "acme:a.cu#1")


@pytest.mark.parametrize(
    ("path", "text", "language", "framework"),
    [
        ("a.cuh", "", "cuda", "cuda"),
        ("a.hpp", "using namespace cute; cute::copy(a, b);\n", "cuda", "cutlass"),
    ],
)
def test_language_and_framework_are_of_the_file(
    path: str, text: str, language: str, framework: str
) -> None:
    chunk = chunks_of(f"{text}{KERNEL.format(n=1, comment='', scale='1.')}", path)[-1]
    assert (chunk.language, chunk.framework) == (language, framework)


def test_version_of_the_chunker_is_the_same_in_each_process() -> None:
    assert chunker_version() == chunker_version()
    assert len(chunker_version().split()[0]) == 16
