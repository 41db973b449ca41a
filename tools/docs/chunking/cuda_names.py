"""What a head of CUDA C++ says: where a function runs, however the library spells it."""

import re

from kopt.tools.docs.records import Kind

from .units import one_line

_KERNEL = re.compile(r"__global__|\bCUTLASS_GLOBAL\b|\b[A-Z0-9_]+_KERNEL\s+(?:static\s+)?void\b")
_DEVICE = re.compile(
    r"__device__|\b[A-Z0-9_]*DEVICE[A-Z0-9_]*\b|\bD(?:EV_)?INLINE\b|\bFLASHINFER_INLINE\b"
    r"|\bQUALIFIERS\b"
)

_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_ATTRIBUTE = re.compile(
    r"(?:__launch_bounds__|__cluster_dims__|__attribute__|__align__|alignas|__maxnreg__"
    r"|__block_size__|decltype|noexcept|requires|explicit)\s*$"
)
_OPERATOR = re.compile(r"(?:[\w:]+::)?operator\s*(?:\(\s*\)|\[\s*\]|[^\s(\w]+|[\w:]+)")
_BRACKETS = re.compile(r"[<>(]|\)")
_LAST_WORD = re.compile(r"([~\w]+(?:\s*::\s*[~\w]+)*)\s*$")


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


def signature_of(head: str) -> str:
    """Return a head on one line, without comments and directives."""
    return one_line(_DIRECTIVE.sub("", _COMMENT.sub("", head)))


def function_name(signature: str) -> str | None:
    """Return what a function is called; None if nothing in `signature` is followed by arguments.

    Attributes with arguments of their own stand before the name; a macro of a library may, too, so
    that of a kernel, which nothing else follows, the last such word is its name.
    """
    operator = _OPERATOR.search(signature)
    if operator:
        return plain_name(operator[0])
    names = list(_called(signature))
    if not names:
        return None
    return names[-1] if function_kind(signature) == "kernel" else names[0]


def _called(signature: str) -> list[str]:
    """Return the names before brackets that stand in none themselves."""
    names: list[str] = []
    depth = angles = 0
    last = 0
    for match in _BRACKETS.finditer(signature):
        mark, before = match[0], signature[last : match.start()]
        if mark == "(":
            word = _LAST_WORD.search(before)
            if depth == angles == 0 and word and not _ATTRIBUTE.search(before):
                names.append("".join(word[1].split()))
            depth += 1
        elif mark == ")":
            depth = max(0, depth - 1)
        elif depth == 0:
            angles = max(0, angles + (1 if mark == "<" else -1))
        last = match.end()
    return names


def _without_arguments(name: str) -> str:
    kept: list[str] = []
    depth = 0
    for part in re.split(r"([<>])", name):
        if part in "<>" and part:
            depth = max(0, depth + (1 if part == "<" else -1))
        elif depth == 0:
            kept.append(part)
    return " ".join("".join(kept).split())
