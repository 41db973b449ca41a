"""A small silu_and_mul: the problem that ships, at shapes that the simulator checks in no time."""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

SHIPPED = Path(__file__).parents[2] / "kernels" / "problems" / "silu_and_mul"
KERNEL = "silu_and_mul_small_b2xh512"
_REST = """\
tolerance: bf16
baselines: []
"""
_WORKLOADS = ("  b2xh512: {axes: {B: 2, H: 512}}\n", "  b4xh512: {axes: {B: 4, H: 512}}\n")


def write_small_silu(problems: Path, *, is_known: bool = False) -> Path:
    """Write a folder of problems with silu_and_mul at two small workloads; return it.

    Args:
        problems: The folder.
        is_known: Whether the problem has a definition, so that kopt writes kernels for it. Then it
            has one workload: such kernels are compiled for each, half a second a candidate.
    """
    folder = problems / "silu_and_mul_small"
    folder.mkdir(parents=True)
    for name in ("oracle.py", "reference.cu", *(("definition.json",) if is_known else ())):
        shutil.copy(SHIPPED / name, folder / name)
    text = (SHIPPED / "problem.yaml").read_text("utf-8")
    head = text.partition("workloads:\n")[0].replace(
        "name: silu_and_mul\n", f"name: {folder.name}\n"
    )
    workloads = "".join(_WORKLOADS[:1] if is_known else _WORKLOADS)
    (folder / "problem.yaml").write_text(f"{head}workloads:\n{workloads}{_REST}")
    return problems


def share_small_silu(problems: Path) -> Path:
    """Return `problems`, which `write_small_silu` has written once for all processes."""
    if not problems.exists():
        fresh = write_small_silu(Path(mkdtemp(dir=problems.parent)))
        with suppress(OSError):  # another process has written it
            os.rename(fresh, problems)
    return problems
