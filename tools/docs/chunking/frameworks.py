"""In what the device code of a file is written."""

import re

_CUTLASS = re.compile(r"\bcutlass::|\bcute::|[<\"/]cute/|[<\"/]cutlass/|\bCUTE_|\bCUTLASS_")
_CUTE_DSL = re.compile(r"\bcutlass\.cute\b|\bcute\.(?:jit|kernel)\b|\bfrom cutlass\b")
_TRITON = re.compile(r"\btriton\b")
_DEVICE = re.compile(r"__global__|__device__|\w*_DEVICE\b|\basm\b|<<<")


def language_of(path: str, text: str) -> str:
    """Return `python`, `cuda`, or `c++` for a C++ file without anything of CUDA."""
    if path.endswith(".py"):
        return "python"
    if path.endswith((".cu", ".cuh", ".jinja")) or _DEVICE.search(text):
        return "cuda"
    return "c++"


def framework_of(path: str, text: str) -> str | None:
    """Return `cuda`, `cutlass`, `cute_dsl` or `triton`; None for Python that has none of these."""
    if not path.endswith(".py"):
        return "cutlass" if _CUTLASS.search(text) else "cuda"
    if _CUTE_DSL.search(text):
        return "cute_dsl"
    return "triton" if _TRITON.search(text) else None
