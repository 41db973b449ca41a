"""Files as chunks: CUDA by function, Markdown by section and table row, winners with speedups."""

import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.families import FAMILIES
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.status import Status
from kopt.tools.docs.chunking.brace_scanner import code_items
from kopt.tools.docs.chunking.sizes import MOST_LINES, line_ranges
from kopt.tools.docs.own.corpus import current_corpus
from kopt.tools.docs.own.markdown_chunks import entries, sections
from kopt.tools.docs.own.own_chunks import make_chunks
from kopt.tools.docs.records import Chunk
from support.docs_winners import promote

PROBLEMS = Path(__file__).parents[4] / "kernels" / "problems"

CODE = """\
// A header (sm_90 on).
#pragma once
namespace kopt {
namespace { int hidden; }

// Adds; "}" and '{' in a comment are no braces.
template <class T, int N = 4>
__device__ __forceinline__ T add(const T (&values)[N]) {
#if defined(KOPT_SIM)
  const char* text = "}}}{";  /* } */
  return values[0];
#else
  if (N > 1) {
    return values[1];
  }
#endif
}

// Twice.
#if defined(KOPT_SIM)
__device__ int twice(int x) { return x + x; }
#else
__device__ int twice(int x) {
  return 2 * x;
}
#endif

struct alignas(16) Pair {
  float low, high;
  __device__ float sum() const { return low + high; }
};
constexpr int kOne = 1;
constexpr int kTwo = 2;
extern "C" __global__ void __launch_bounds__(256, 2) main_kernel(float* x) { x[0] = 1; }
}  // namespace kopt
"""


def test_code_is_cut_into_functions_with_their_comments() -> None:
    found = [(item.kind, item.symbol) for item in code_items(CODE)]
    assert found == [
        ("decl", "hidden"),
        ("device", "add"),
        ("device", "twice"),
        ("struct", "Pair"),
        ("decl", "kOne, kTwo"),
        ("kernel", "main_kernel"),
    ]


def test_an_item_goes_from_its_comment_to_its_last_brace() -> None:
    lines = CODE.split("\n")
    add = next(item for item in code_items(CODE) if item.symbol == "add")
    assert lines[add.start_line - 1].startswith("// Adds")
    assert lines[add.end_line - 1] == "}"
    assert add.comment.startswith("Adds;")


def test_a_function_in_two_branches_is_one_item() -> None:
    twice = next(item for item in code_items(CODE) if item.symbol == "twice")
    text = CODE.split("\n")[twice.start_line - 1 : twice.end_line]
    assert text[0] == "// Twice."
    assert text[-1] == "#endif"


@pytest.mark.parametrize(
    "code", ["", "{", "}", "}}}}", "/* never closed", '"', "#if\n#else\n#endif", "/*" * 20_000, ";"]
)
def test_broken_code_gives_items_or_none(code: str) -> None:
    assert len(code_items(code)) <= 1


def test_long_items_come_in_pieces_that_overlap() -> None:
    found = line_ranges(1, 250)
    assert all(last - first < MOST_LINES for first, last in found)
    assert all(one[1] >= other[0] for one, other in pairwise(found))
    assert (found[0][0], found[-1][1]) == (1, 250)


PAGE = """\
# Title

Words.

## Keys

| key | holds |
|---|---|
| `tune` | what is swept over by a run, and its values |
| plain | not about one name, and long enough for an entry |

```sh
# not a heading
| `no` | table in a code block that is long enough |
```

## Empty
"""


def test_a_page_is_cut_at_headings_outside_of_code() -> None:
    assert [section.headings for section in sections(PAGE)] == [
        ("Title",),
        ("Title", "Keys"),
        ("Title", "Empty"),
    ]


def test_a_row_about_one_name_is_an_entry_with_its_columns() -> None:
    (entry,) = [entry for section in sections(PAGE) for entry in entries(section)]
    assert entry.name == "tune"
    assert entry.text.startswith("key: `tune`\nholds: what")
    assert PAGE.split("\n")[entry.line - 1].startswith("| `tune`")


@pytest.fixture(scope="module")
def chunks(tmp_path_factory: pytest.TempPathFactory) -> list[Chunk]:
    """The chunks of what ships."""
    return make_chunks(current_corpus(Settings(home=tmp_path_factory.mktemp("home"))))


def test_every_status_has_its_entry(chunks: list[Chunk]) -> None:
    found = {chunk.symbol for chunk in chunks if chunk.path == "docs/statuses.md"}
    assert {str(status) for status in Status} <= found


def test_every_family_has_its_note(chunks: list[Chunk]) -> None:
    found = {chunk.symbol for chunk in chunks if chunk.path.endswith("families.md")}
    assert set(FAMILIES) <= found


def test_every_problem_has_its_card_and_its_reference_kernel(chunks: list[Chunk]) -> None:
    cards = {chunk.symbol for chunk in chunks if chunk.kind == "problem"}
    kernels = {chunk.path.split("/")[2] for chunk in chunks if chunk.kind == "kernel"}
    assert cards == set(load_problems())
    assert kernels == set(load_problems())


def test_every_function_of_the_headers_can_be_found(chunks: list[Chunk]) -> None:
    found = {chunk.symbol for chunk in chunks if chunk.source == "headers"}
    assert {"cp_async", "tma_load_1d", "load_32", "mbarrier_wait_parity", "block_scale"} <= found
    assert "for_each_element" not in found  # the simulator's own


def test_a_body_is_what_stands_in_the_file(chunks: list[Chunk]) -> None:
    root = Path(__file__).parents[4]
    for chunk in chunks:
        if not chunk.derived:
            lines = (root / chunk.path).read_text("utf-8").split("\n")
            assert "\n".join(lines[chunk.start_line - 1 : chunk.end_line]).strip() == (
                chunk.body.strip()
            ), chunk.uid


def test_code_that_stands_twice_is_one_chunk_with_both_places(chunks: list[Chunk]) -> None:
    (rounding,) = [chunk for chunk in chunks if chunk.symbol == "float_to_nvfp4"]
    assert len(rounding.also_at) >= 3


@pytest.mark.slow  # all chunks anew
def test_a_winner_says_its_speedup_and_device(own_docs: Settings) -> None:
    promote(own_docs, speedup=1.5)
    (winner,) = [c for c in make_chunks(current_corpus(own_docs)) if c.symbol == "zebra_sum"]
    assert winner.title == "winner of synthetic, 1.50x on sm_90a: zebra_sum"
    assert "H100" in winner.comment
    assert winner.arch == ("sm90",)
    assert winner.license is None


@pytest.mark.slow  # all chunks anew
def test_a_winner_without_a_sound_receipt_has_no_speedup(own_docs: Settings) -> None:
    path = promote(own_docs, speedup=1.5)
    receipt = path.with_name("b8xh64.sm_90a.receipt.json")
    receipt.write_text(receipt.read_text("utf-8").replace("1.5", "9.5"), "utf-8")
    (winner,) = [c for c in make_chunks(current_corpus(own_docs)) if c.symbol == "zebra_sum"]
    assert "x on" not in winner.title
    assert "speedup is not known" in winner.comment


@pytest.mark.slow  # all chunks anew
def test_a_receipt_of_other_code_is_not_believed(own_docs: Settings) -> None:
    path = promote(own_docs, speedup=1.5)
    path.write_text(path.read_text("utf-8") + "// edited\n", "utf-8")
    (winner,) = [c for c in make_chunks(current_corpus(own_docs)) if c.symbol == "zebra_sum"]
    assert "of other code" in winner.comment


@pytest.mark.slow  # all chunks anew
def test_an_unproven_kernel_says_that_it_never_ran_there(own_docs: Settings) -> None:
    chunks = make_chunks(current_corpus(own_docs))
    (kernel,) = [one for one in chunks if one.symbol == "nvfp4_quantize_blocks"]
    assert kernel.source == "winners"
    assert kernel.title == "unproven kernel of nvfp4_quantize for sm_100a: nvfp4_quantize_blocks"
    assert "Never run on sm_100a, no speedup is known." in kernel.comment
    assert "full check on sim passed" in kernel.comment
    assert kernel.arch == ("sm100",)


@pytest.mark.slow  # all chunks anew
def test_facts_of_other_code_are_not_told_of_an_unproven_kernel(
    own_docs: Settings, tmp_path: Path
) -> None:
    own = tmp_path / "mine" / "nvfp4_quantize_mine"
    shutil.copytree(PROBLEMS / "nvfp4_quantize", own)
    (source,) = (own / "unproven").glob("*.cu")
    source.write_text(source.read_text("utf-8").replace("nvfp4_quantize_blocks", "zebra_blocks"))
    corpus = current_corpus(replace(own_docs, problems=tmp_path / "mine"))
    (kernel,) = [one for one in make_chunks(corpus) if one.symbol == "zebra_blocks"]
    assert kernel.title.startswith("unproven kernel of nvfp4_quantize_mine for sm_100a")
    assert "estimated" not in kernel.comment
