"""Tiny checkouts in the formats of other benchmarks; every task is made up."""

import json
from collections.abc import Mapping
from pathlib import Path

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


def definition(name: str = "scaled_c96", **changes: object) -> dict[str, object]:
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


def workload(rows: int, **inputs: object) -> dict[str, object]:
    """Return a Workload of it."""
    given = {
        "x": {"type": "random"},
        "scale": {"type": "random"},
        "factor": {"type": "scalar", "value": 0.5},
        **inputs,
    }
    return {"uuid": f"rows-{rows}", "axes": {"rows": rows}, "inputs": given}


def write_trace(
    root: Path, documents: list[dict[str, object]], workloads: list[dict[str, object]]
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
