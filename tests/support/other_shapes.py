"""Shipped problems with a workload that they do not have."""

import re
from collections.abc import Mapping
from pathlib import Path

from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problem


def with_one_workload(shipped: Problem, axes: Mapping[str, int], folder: Path) -> Problem:
    """Return `shipped`, written below `folder` with one workload instead of its own."""
    made = folder / shipped.name
    made.mkdir()
    (made / "oracle.py").write_text((shipped.folder / "oracle.py").read_text("utf-8"))
    text = (shipped.folder / "problem.yaml").read_text("utf-8")
    workload = "x".join(f"{axis.lower()}{size}" for axis, size in axes.items())
    sizes = ", ".join(f"{axis}: {size}" for axis, size in axes.items())
    entry = f"workloads:\n  {workload}: {{axes: {{{sizes}}}}}\ntolerance:"
    text, replaced = re.subn(r"workloads:.*?tolerance:", entry, text, flags=re.S)
    assert replaced == 1
    (made / "problem.yaml").write_text(text)
    return load_problem(made)
