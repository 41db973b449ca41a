"""What the good model knows to do to a CUDA source: small changes that are each a known technique.

Each takes a source to a changed one, or to None where it does not apply or is in it already, so
that moves add up over the rounds. They are edits of text, as a model's are; kopt judges them.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from kopt.tools.selftest.sample import SAMPLES

_SHUFFLE_SUM = """\
// Every thread of the block calls this and gets the same sum: warps by shuffles, then their sums.
__device__ float block_sum(float value) {
  __shared__ float partial[BLOCK / 32];
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, lanes);
  }
  if (threadIdx.x % 32 == 0) {
    partial[threadIdx.x / 32] = value;
  }
  __syncthreads();  // all warp sums are in place before any is read
  float sum = 0.0f;
  for (int warp = 0; warp < BLOCK / 32; ++warp) {
    sum += partial[warp];
  }
  return sum;
}
"""


@dataclass(frozen=True)
class Move:
    """One technique."""

    family: str
    name: str
    hypothesis: str
    mechanism: str
    risk: str
    gain: float
    """Expected, as a fraction."""
    write: Callable[[str], str | None]


def replaced(pattern: str, by: str, forbidden: str) -> Callable[[str], str | None]:
    """Return an edit of every match, unless what it brings in is there already."""

    def write(source: str) -> str | None:
        changed = re.sub(pattern, by, source)
        return None if re.search(forbidden, source) or changed == source else changed

    return write


def _next_block(source: str) -> str | None:
    """Return `source` with the second value of BLOCK as its default."""
    found = re.search(r"BLOCK: \[(\d+), (\d+)", source)
    if found is None or "swept" in source:
        return None
    swapped = source.replace(found[0], f"BLOCK: [{found[2]}, {found[1]}", 1)
    return f"{swapped}// swept: BLOCK\n"


def _shuffles(source: str) -> str | None:
    found = re.search(r"(//[^\n]*\n)?__device__ float block_sum\(.*?\n}\n", source, re.DOTALL)
    if found is None or "__shfl" in source:
        return None
    return source.replace(found[0], _SHUFFLE_SUM)


def from_sample(name: str) -> Callable[[str], str | None]:
    """Return an edit that writes a whole kernel anew: the sample good_NAME.cu, for any rows."""
    source = (SAMPLES / f"good_{name}.cu").read_text("utf-8")
    source = re.sub(r"^// sample:.*\n", "", source, flags=re.MULTILINE)
    # The samples are checked at their smallest workload only, to be quick; they hold for any.
    source = re.sub(r'where: "[BN] <= \d+ and ', 'where: "', source)
    source = re.sub(r'where: "[BN] <= \d+"', 'where: "true"', source)
    return lambda parent: None if _code(parent) == _code(source) else source


def signed(source: str, family: str, note: str) -> str:
    """Return `source` with the family and the note of its header in the author's words."""
    header, end, code = source.partition("*/")
    words = json.dumps(note)  # a string of JSON is one of YAML
    header = re.sub(r"^family: .*$", f"family: {family}", header, count=1, flags=re.MULTILINE)
    header = re.sub(r"^note: .*$", lambda _: f"note: {words}", header, count=1, flags=re.MULTILINE)
    return f"{header}{end}{code}"


def _code(source: str) -> str:
    """Return what stands below the header."""
    return source.partition("*/")[2].strip()


MOVES = (
    Move(
        "ilp_unroll",
        "four columns in flight",
        "Unroll the loop over columns four times, so that its loads do not wait for one another.",
        "more loads in flight per thread hide the latency of DRAM",
        "registers; a tail that is not a multiple of the unroll",
        0.3,
        replaced(r"(\n *)(for \(int column = threadIdx)", r"\1#pragma unroll 4\1\2", "#pragma"),
    ),
    Move(
        "launch_bounds",
        "bounds for the compiler",
        "Tell the compiler the size of the block, so that it spends registers accordingly.",
        "more blocks resident on an SM",
        "spills where the bound is too tight",
        0.05,
        replaced(
            r"__global__ void (\w+)",
            r"__global__ void __launch_bounds__(BLOCK) \1",
            r"__launch_bounds__|block: \d",
        ),
    ),
    Move(
        "cache_policy",
        "read-only loads",
        "Declare inputs as restricted, so that they go through the read-only path.",
        "LDG with the non-coherent path may be cached in L1 and hoisted over stores",
        "inputs that are written in place must not be restricted",
        0.05,
        replaced(
            r"(const (?:__nv_bfloat16|float|int)\*) (\w+[,)])", r"\1 __restrict__ \2", "restr"
        ),
    ),
    Move(
        "fast_math",
        "special-function exponential",
        "Use the hardware exponential; the result is rounded to bfloat16 anyway.",
        "one MUFU instruction instead of a range reduction",
        "large arguments must still give 0, never NaN",
        0.05,
        replaced(r"\bexpf\(", "__expf(", "__expf"),
    ),
    Move(
        "reduction",
        "warp shuffles",
        "Sum within warps by shuffles and only their sums through shared memory.",
        "one barrier instead of one per halving",
        "every lane of a warp must take part",
        0.15,
        _shuffles,
    ),
    Move(
        "constants_sweep",
        "another block size",
        "Take the other block size as the default; kopt sweeps the rest.",
        "more warps for the same row shorten the loop",
        "fewer blocks per SM",
        0.1,
        _next_block,
    ),
)
