"""What a head of CUDA C++ says: where a function runs, however the library spells it."""

import re

from kopt.tools.docs.records import Kind

_KERNEL = re.compile(r"__global__|\bCUTLASS_GLOBAL\b|\b[A-Z0-9_]+_KERNEL\s+(?:static\s+)?void\b")
_DEVICE = re.compile(
    r"__device__|\b[A-Z0-9_]*DEVICE[A-Z0-9_]*\b|\bD(?:EV_)?INLINE\b|\bFLASHINFER_INLINE\b"
    r"|\bQUALIFIERS\b"
)


def function_kind(head: str) -> Kind:
    """Return kernel, device or host by the qualifiers in `head`, macros of libraries included."""
    if _KERNEL.search(head):
        return "kernel"
    return "device" if _DEVICE.search(head) else "host"


def plain_name(name: str) -> str:
    """Return a name without template arguments: `A::f` of `A<int, B<2>>::f`."""
    before, operator, after = name.partition("operator")
    if operator:
        return f"{_without_arguments(before)}{operator}{' '.join(after.split())}"
    return _without_arguments(name)


def _without_arguments(name: str) -> str:
    kept: list[str] = []
    depth = 0
    for part in re.split(r"([<>])", name):
        if part in "<>" and part:
            depth = max(0, depth + (1 if part == "<" else -1))
        elif depth == 0:
            kept.append(part)
    return " ".join("".join(kept).split())
