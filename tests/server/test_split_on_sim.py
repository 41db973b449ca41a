"""A network imported, split, stitched with other kernels, and judged as a whole on sim."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kopt.kernels.problem_loader import load_problem
from kopt.server.exits import ExitCode
from kopt.tools.pytorch.graph import read_graph
from support.command_line import Kopt
from support.network_sources import MLP

pytestmark = pytest.mark.slow  # torch.export in a fresh process, then checks on the simulator

HEAD = """/* kopt: 1
family: thread_utilization
note: a warp for each result
launch:
  - {kernel: head, grid: "RESULTS, ROWS", block: 32, args: [x, bias, weight, out, COLUMNS, RESULTS]}
*/
extern "C" __global__ void head(const float* x, const float* bias, const float* weight,
                                float* out, int width, long long results) {
  float sum = 0.0f;
  for (int k = threadIdx.x; k < width; k += 32) {
    sum += x[blockIdx.y * width + k] * weight[blockIdx.x * width + k];
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x == 0) out[blockIdx.y * results + blockIdx.x] = sum + bias[blockIdx.x];
}
"""


def _head(parts: Path) -> str:
    """Return a kernel for the head, in the names of its axes."""
    problem = load_problem(parts / "mlp_head")
    rows, columns = problem.tensor("x").shape
    results = problem.tensor("out").shape[1]
    names = {"ROWS": rows, "COLUMNS": columns, "RESULTS": results}
    return re.sub("ROWS|COLUMNS|RESULTS", lambda match: names[match[0]], HEAD)


def _judged(kopt: Kopt, parts: Path, file: Path) -> dict[str, Any]:
    words = ("--kernel", "mlp_small", "--problems", parts / "whole", "--device", "sim", "--json")
    return kopt("check", file, *words).document


def test_a_network_in_parts_is_judged_as_a_whole(kopt: Kopt, tmp_path: Path) -> None:
    source, parts, whole = tmp_path / "mlp.py", tmp_path / "parts", tmp_path / "whole.cu"
    source.write_text(MLP, "utf-8")
    made = kopt("new", source, "-o", tmp_path / "problems", "--json")
    assert made.code == ExitCode.PASSED, made.stdout
    split = kopt("split", made.document["folder"], "-o", parts, "--json")
    assert split.code == ExitCode.PASSED, split.stdout
    assert [(one["name"], len(one["regions"])) for one in split.document["parts"]] == [
        ("mlp_blocks_0", 2),
        ("mlp_head", 1),
    ]
    assert split.document["weights"] == "estimated"
    assert sum(one["weight"] for one in split.document["parts"]) == pytest.approx(1.0)
    assert json.loads((parts / "split.json").read_text("utf-8")) == split.document
    _assert_records_what_the_network_feeds(parts / "mlp_head")

    _assert_is_a_suite(kopt, parts)

    stitched = kopt("stitch", parts, "--winners", "reference", "-o", whole, "--json")
    assert stitched.document["launches"] == made.document["launches"]
    assert _judged(kopt, parts, whole)["status"] == "passed"

    mine = tmp_path / "mine.cu"
    mine.write_text(_head(parts), "utf-8")
    other = kopt("stitch", parts, "--use", f"head={mine}", "-o", whole, "--json")
    assert [one["origin"] for one in other.document["parts"]] == ["reference", "named"]
    assert "fast_math" in other.document["notes"][0]
    assert _judged(kopt, parts, whole)["status"] == "passed"

    mine.write_text(_head(parts).replace(" + bias[blockIdx.x]", ""), "utf-8")
    assert kopt("stitch", parts, "--use", f"head={mine}", "-o", whole).code == ExitCode.PASSED
    assert _judged(kopt, parts, whole)["status"] == "incorrect"


def _assert_is_a_suite(kopt: Kopt, parts: Path) -> None:
    """Run and score the parts: the whole beside them is no task."""
    ran = kopt("suite", "run", parts, "--device", "sim", "--level", "quick")
    assert ran.code == ExitCode.PASSED, ran.stdout
    assert "2 tasks on sim: 2 valid" in ran.stdout
    assert "Next: kopt suite score" in ran.stdout
    scored = kopt("suite", "score", parts, "--json").document
    assert [one["task"] for one in scored["tasks"]] == ["mlp_blocks_0", "mlp_head"]
    assert scored["scores"][0]["valid_rate"]["value"] == 1.0


def _assert_records_what_the_network_feeds(folder: Path) -> None:
    samples = sorted(folder.glob("x.sample*.npy"))
    assert len(samples) == 3
    first, second = (np.load(one, allow_pickle=False) for one in samples[:2])
    assert first.dtype == np.float32
    assert not np.array_equal(first, second)
    given = read_graph(folder).inputs[0]
    assert given.drawing.samples == 3
    assert given.drawing.deviation == pytest.approx(float(np.std(first)), rel=0.2)
