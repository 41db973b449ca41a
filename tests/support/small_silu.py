"""A small silu_and_mul: the problem that ships, at shapes that the simulator checks in no time."""

import shutil
from pathlib import Path

SHIPPED = Path(__file__).parents[2] / "kernels" / "problems" / "silu_and_mul"
KERNEL = "silu_and_mul_small_b2xh512"
_REST = """\
workloads:
  b2xh512: {axes: {B: 2, H: 512}}
  b4xh512: {axes: {B: 4, H: 512}}
tolerance: bf16
baselines: []
"""


def write_small_silu(problems: Path, *, is_known: bool = False) -> Path:
    """Write a folder of problems with silu_and_mul at two small workloads; return it.

    Args:
        problems: The folder.
        is_known: Whether the problem has a definition, so that kopt writes kernels for it.
    """
    folder = problems / "silu_and_mul_small"
    folder.mkdir(parents=True)
    for name in ("oracle.py", "reference.cu", *(("definition.json",) if is_known else ())):
        shutil.copy(SHIPPED / name, folder / name)
    text = (SHIPPED / "problem.yaml").read_text("utf-8")
    head = text.partition("workloads:\n")[0].replace(
        "name: silu_and_mul\n", f"name: {folder.name}\n"
    )
    (folder / "problem.yaml").write_text(head + _REST)
    return problems
