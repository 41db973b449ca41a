"""What a head of CUDA C++ says: where a function runs, however the library spells it."""

import re

from kopt.tools.docs.records import Kind

from .units import CPP_COMMENT, one_line

_KERNEL = re.compile(r"__global__|\bCUTLASS_GLOBAL\b|\b[A-Z0-9_]+_KERNEL\s+(?:static\s+)?void\b")
_DEVICE = re.compile(
    r"__device__|\b[A-Z0-9_]*DEVICE[A-Z0-9_]*\b|\bD(?:EV_)?INLINE\b|\bFLASHINFER_INLINE\b"
    r"|\bQUALIFIERS\b"
)

_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_ATTRIBUTES = frozenset(
    (
        *("__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__block_size__"),
        *("__attribute__", "__align__", "alignas", "decltype", "noexcept", "requires", "explicit"),
    )
)
_OPERATOR = re.compile(r"(?:[\w:]+::)?operator\s*(?:\(\s*\)|\[\s*\]|[^\s(\w]+|[\w:]+)")
_SCOPE = re.compile(r"\s*::\s*")
_TYPE = re.compile(
    r"\b(?:struct|class|union|enum(?:\s+class|\s+struct)?)\s+"
    r"(?:\w+\s*\(\)\s*|\[\[[^\]]*\]\]\s*)*(\w+)"
)
_TEMPLATE = re.compile(r"\btemplate\s*<")
_BRACKETS = re.compile(r"[<>(]|\)")
_ENDS = re.compile(r"[(){};]")
_CALLED = re.compile(r"([~\w]+(?:\s*::\s*[~\w]+)*)\s*\(")


def function_kind(head: str) -> Kind:
    """Return kernel, device or host by the qualifiers in `head`, macros of libraries included."""
    if _KERNEL.search(head):
        return "kernel"
    return "device" if _DEVICE.search(head) else "host"


def plain_name(name: str) -> str:
    """Return a name without template arguments: `A::f` of `A<int, B<2>>::f`."""
    before, operator, after = name.partition("operator")
    if operator:
        owner = _last_name(before) if before.rstrip().endswith(":") else ""
        return f"{owner}{operator}{after.strip()}"
    return _last_name(name)


def signature_of(head: str) -> str:
    """Return a head on one line, without comments and directives."""
    return one_line(_DIRECTIVE.sub("", CPP_COMMENT.sub("", head)))


def named_by(signature: str) -> tuple[Kind, str] | None:
    """Return (kind, name) of what `signature` stands before the body of; None for a variable.

    Attributes with arguments of their own stand before the name of a function; a macro of a library
    may, too, so that of a kernel, which nothing else follows, the last such word is its name.
    """
    operator = _OPERATOR.search(signature)
    if operator:
        return function_kind(signature), plain_name(operator[0])
    outside = _outside(_without_template(signature))
    names = [_SCOPE.sub("::", match[1]) for match in _CALLED.finditer(outside)]
    names = [name for name in names if name not in _ATTRIBUTES]
    if names and "=" not in outside.split("(")[0]:
        kind = function_kind(signature)
        return kind, names[-1] if kind == "kernel" else names[0]
    named = _TYPE.search(outside)
    return ("struct", named[1]) if named else None


def before_body(text: str) -> str:
    """Return what stands before the first brace or semicolon that is in no parentheses."""
    depth = 0
    for match in _ENDS.finditer(text):
        if match[0] in "()":
            depth += 1 if match[0] == "(" else -1
        elif depth <= 0:
            return text[: match.start()]
    return text


def _without_template(signature: str) -> str:
    """Return `signature` without the parameters of templates, which name types, too."""
    while begin := _TEMPLATE.search(signature):
        depth, at = 1, begin.end()
        while depth and at < len(signature):
            depth += {"<": 1, ">": -1}.get(signature[at], 0)
            at += 1
        signature = signature[: begin.start()] + signature[at:]
    return signature


def _outside(signature: str) -> str:
    """Return what stands in no brackets, with `()` where there were parentheses."""
    outside: list[str] = []
    depth = angles = last = 0
    for match in _BRACKETS.finditer(signature):
        mark = match[0]
        if depth == angles == 0:
            outside.append(signature[last : match.start()])
            outside.append("()" if mark == "(" else "")
        if mark == "(":
            depth += 1
        elif mark == ")":
            depth = max(0, depth - 1)
        elif depth == 0:
            angles = max(0, angles + (1 if mark == "<" else -1))
        last = match.end()
    if depth == angles == 0:
        outside.append(signature[last:])
    return "".join(outside)


def _last_name(name: str) -> str:
    kept: list[str] = []
    depth = 0
    for part in re.split(r"([<>])", name):
        if part in "<>" and part:
            depth = max(0, depth + (1 if part == "<" else -1))
        elif depth == 0:
            kept.append(part)
    words = _SCOPE.sub("::", "".join(kept)).split()
    return words[-1] if words else ""
