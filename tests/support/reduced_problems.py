"""Shipped problems with a single workload each: the same kernel, a full check of seconds."""

import re
import shutil
from pathlib import Path

SHIPPED = Path(__file__).parents[2] / "kernels" / "problems"
_SUFFIX = "_alone"


def write_reduced(kernel: str, problems: Path) -> str:
    """Write the problem of a shipped kernel with nothing but that kernel; return its new id."""
    folders = (one for one in SHIPPED.iterdir() if kernel.startswith(f"{one.name}_"))
    shipped = max(folders, key=lambda one: len(one.name))
    workload = kernel.removeprefix(f"{shipped.name}_")
    name = f"{shipped.name}{_SUFFIX}"
    folder = problems / name
    folder.mkdir(parents=True, exist_ok=True)
    for file in ("oracle.py", "reference.cu"):
        shutil.copy(shipped / file, folder / file)
    text = (shipped / "problem.yaml").read_text("utf-8")
    (line,) = re.findall(rf"^  {workload}: .*\n", text, re.MULTILINE)
    head = text.partition("workloads:\n")[0].replace(f"name: {shipped.name}\n", f"name: {name}\n")
    (tolerance,) = re.findall(r"^tolerance: .*\n", text, re.MULTILINE)
    rest = f"workloads:\n{line}{tolerance}baselines: []\n"
    (folder / "problem.yaml").write_text(f"{head}{rest}")
    return f"{name}_{workload}"
