"""Tiny checkouts in the formats of other benchmarks; every task is made up."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.torch_sources import HEAD

SCALED = (
    HEAD
    + """class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(width))

    def forward(self, x):
        return torch.relu(x) * self.scale

rows = 512
width = 96

def get_inputs():
    return [torch.randn(rows, width)]

def get_init_inputs():
    return [width]
"""
)
RANDOM = SCALED.replace("torch.relu(x)", "F.dropout(x)")

REFERENCE = """import torch

def run(x, scale, factor):
    return (x.float() * scale * factor).to(torch.bfloat16)
"""


def write_kernelbench(root: Path, tasks: Mapping[str, str]) -> Path:
    """Write files such as `level1/19_Scaled.py` and return the checkout."""
    for name, text in tasks.items():
        path = root / "KernelBench" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


def definition(name: str = "scaled_c96", **changes: Any) -> dict[str, Any]:
    """Return a Definition of FlashInfer-Trace."""
    return {
        "name": name,
        "op_type": "scaling",
        "axes": {"rows": {"type": "var"}, "columns": {"type": "const", "value": 96}},
        "inputs": {
            "x": {"shape": ["rows", "columns"], "dtype": "bfloat16"},
            "scale": {"shape": ["columns"], "dtype": "float32", "description": "of columns"},
            "factor": {"shape": None, "dtype": "float32"},
        },
        "outputs": {"out": {"shape": ["rows", "columns"], "dtype": "bfloat16"}},
        "reference": REFERENCE,
        **changes,
    }


def workload(rows: int, **inputs: object) -> dict[str, Any]:
    """Return a Workload of it."""
    given = {
        "x": {"type": "random"},
        "scale": {"type": "random"},
        "factor": {"type": "scalar", "value": 0.5},
        **inputs,
    }
    return {"uuid": f"rows-{rows}", "axes": {"rows": rows}, "inputs": given}


def write_trace(
    root: Path, documents: list[dict[str, Any]], workloads: list[dict[str, Any]]
) -> Path:
    """Write a data set of FlashInfer-Trace whose Definitions all have these workloads."""
    for document in documents:
        place = root / "definitions" / "scaling" / f"{document['name']}.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(document), "utf-8")
        lines = [
            json.dumps({"definition": document["name"], "workload": one, "solution": None})
            for one in workloads
        ]
        place = root / "workloads" / "scaling" / f"{document['name']}.jsonl"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("\n".join(lines) + "\n", "utf-8")
    return root


SOL_REFERENCE = """import torch

def inputs_of(axes_and_scalars, device):
    rows, groups = axes_and_scalars["rows"], axes_and_scalars["groups"]
    return {
        "x": torch.randn(rows, axes_and_scalars["width"], device=device),
        "group": torch.randint(0, groups, (rows,), device=device),
        "table": torch.rand(groups, 16, device=device),
    }

@torch.no_grad()
def run(x, group, table):
    return x * table[group].repeat(1, x.shape[1] // table.shape[1])
"""


def write_sol(root: Path, name: str = "grouped_scale") -> Path:
    """Write a problem of SOL-ExecBench with a computed axis and a function that makes inputs."""
    document: dict[str, object] = {
        "name": name,
        "op_type": None,
        "axes": {
            "rows": {"type": "var", "description": None},
            "groups": {"type": "const", "value": 24},
            "parts": {"type": "const", "value": 4},
            "width": {"type": "expr", "expression": "parts * 16"},
        },
        "custom_inputs_entrypoint": "inputs_of",
        "inputs": {
            "x": {"shape": ["rows", "width"], "dtype": "float32"},
            "group": {"shape": ["rows"], "dtype": "int64"},
            "table": {"shape": ["groups", "16"], "dtype": "float32"},
        },
        "outputs": {"out": {"shape": ["rows", "width"], "dtype": "float32"}},
        "reference": SOL_REFERENCE,
    }
    custom = {key: {"type": "custom"} for key in ("x", "group", "table")}
    lines = [
        {"uuid": str(rows), "axes": {"rows": rows}, "inputs": custom, "tolerance": {}}
        for rows in (128, 2048)
    ]
    folder = root / "L1" / name
    folder.mkdir(parents=True)
    (folder / "definition.json").write_text(json.dumps(document), "utf-8")
    (folder / "workload.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n", "utf-8")
    return root


FORWARD = """import torch
import torch.nn as nn

SLOPE = 25


def forward_fn(x, weight):
    return torch.where(x > 0, x, x / SLOPE) * weight


class Model(nn.Module):
    def __init__(self, width: int = 8, start: float = 0.5):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + start)

    def forward(self, x, fn=forward_fn):
        return fn(x, self.weight)


def get_inputs(rows: int = 2, width: int = 8):
    return (torch.randn(rows, width),)


input_names = ["x"]
"""


def write_robust(root: Path, name: str = "leaky_scale") -> Path:
    """Write a task of robust-kbench with several configurations."""
    folder = root / "tasks" / name
    folder.mkdir(parents=True)
    (folder / "func_forward.py").write_text(FORWARD, "utf-8")
    config = {
        "single_input_configs": [{"rows": 2048, "width": 16}],
        "multi_input_configs": [{"rows": 16}, {"rows": 2048}],
        "single_init_configs": [{"start": 1.5}],
        "single_shared_configs": [{"width": 64}],
    }
    (folder / "config_forward.json").write_text(json.dumps(config), "utf-8")
    return root


TASK_YML = """files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "task.py", "source": "task.py"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "reference.py", "source": "reference.py"}
  - {"name": "eval.py", "source": "../eval.py"}
lang: "py"
config:
  main: "eval.py"
tests:
  - {"rows": 16, "columns": 32, "seed": 4242}
benchmarks:
  - {"rows": 2048, "columns": 64, "seed": 99}
  - {"rows": 128, "columns": 32, "seed": 999999999}
"""
TASK_PY = """from typing import TypeVar
import torch
input_t = TypeVar("input_t", bound=tuple[torch.Tensor, torch.Tensor])
output_t = TypeVar("output_t", bound=torch.Tensor)
"""
UTILS_PY = """class Precise:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

def checked_against(reference):
    return reference
"""
REFERENCE_PY = """from utils import Precise, checked_against
import torch
from task import input_t, output_t


def generate_input(rows: int, columns: int, seed: int) -> input_t:
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)
    x = torch.randn(rows, columns, device="cuda:0", generator=gen)
    out = torch.empty(rows, device="cuda")
    return x.cuda(), out


def ref_kernel(data: input_t) -> output_t:
    with Precise():
        x, out = data
        return torch.relu(x).sum(dim=1)


check_implementation = checked_against(ref_kernel)
"""


def write_gpumode(root: Path, name: str = "rowsum_py", task: str = TASK_YML) -> Path:
    """Write a task of GPU MODE below a deck with shared files."""
    folder = root / "deck" / name
    folder.mkdir(parents=True)
    (folder / "task.yml").write_text(task, "utf-8")
    (folder / "task.py").write_text(TASK_PY, "utf-8")
    (folder / "reference.py").write_text(REFERENCE_PY, "utf-8")
    (folder.parent / "utils.py").write_text(UTILS_PY, "utf-8")
    return root
