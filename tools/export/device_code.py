"""A candidate's source as a file that is included inside a namespace, and the headers it needs.

Three things change: the header comment goes (the host code says what it said), `#include` lines
move to the file that includes this one, and `extern "C"` goes, so that several builds of one source
can be linked together. Nothing else of the author's text is touched.

kopt's own headers come without what only its CPU simulator compiles.
"""

import re
from dataclasses import dataclass

from kopt.config.errors import ToolError
from kopt.kernels.source_lexer import logical_lines
from kopt.tools.cuda.include_tree import kopt_headers

_HEADER_COMMENT = re.compile(r"\A\s*/\*.*?\*/\s*", re.DOTALL)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([<\"][^>\"\n]+[>\"])[^\n]*\n?", re.MULTILINE)
_KOPT_HEADER = re.compile(r"[<\"]kopt/([a-z0-9_]+\.cuh)[>\"]")
_C_LINKAGE = re.compile(r'extern\s+"C"(\s*\{)?\s*')
_WIDE_ACCESS = re.compile(r"\b(load|store)_32\b")


@dataclass(frozen=True)
class DeviceCode:
    """What a build of the kernel is made of."""

    text: str
    """The author's code, without includes."""
    includes: tuple[str, ...]
    """`<cuda_bf16.h>` or `"kopt/griddepcontrol.cuh"`, in the author's order."""
    headers: dict[str, str]
    """kopt's own headers by file name, those that are needed."""

    @property
    def alignment_bytes(self) -> int:
        """The widest access of a thread, and so the alignment that tensors need."""
        return 32 if _WIDE_ACCESS.search(self.text) else 16


def device_code(source: str) -> DeviceCode:
    """Return `source` for inclusion.

    Raises:
        ToolError: It includes what only a macro or a branch of its own decides about.
    """
    body = _HEADER_COMMENT.sub("", source, count=1)
    _refuse_late_includes(body)
    names = tuple(dict.fromkeys(match[1] for match in _INCLUDE.finditer(body)))
    text = _C_LINKAGE.sub(_without_c_linkage, _INCLUDE.sub("", body)).strip() + "\n"
    return DeviceCode(text, tuple(_quoted(name) for name in names), _headers(names))


def _without_c_linkage(match: re.Match[str]) -> str:
    return 'extern "C++" {' if match[1] else ""


def _refuse_late_includes(body: str) -> None:
    """Refuse an include whose meaning would change where it stands first."""
    defined: str | None = None
    depth = 0
    for line in logical_lines(body):
        if not line.is_directive or len(line.tokens) < 2:
            continue
        word = line.tokens[1].text
        depth += (word in ("if", "ifdef", "ifndef")) - (word == "endif")
        if word == "define":
            defined = line.tokens[2].text
        elif word == "include" and (defined or depth):
            why = f"after #define {defined}" if defined else "inside #if"
            raise ToolError(
                f"#include {line.tokens[2].text} stands {why}: includes of an exported kernel are"
                " moved to the front, so write it first, without a condition"
            )


def _headers(names: tuple[str, ...]) -> dict[str, str]:
    """Return kopt's headers that `names` reach, without their bodies for the simulator."""
    packaged = kopt_headers()
    found: dict[str, str] = {}
    pending = [match[1] for name in names if (match := _KOPT_HEADER.fullmatch(name))]
    while pending:
        file = pending.pop(0)
        if file not in found:
            text = without_simulator(packaged[file].decode())
            pending += _KOPT_HEADER.findall(text)
            licence = "// Part of kopt. SPDX-License-Identifier: Apache-2.0\n"
            found[file] = licence + _KOPT_HEADER.sub(r'"\1"', text)
    return found


def _quoted(name: str) -> str:
    match = _KOPT_HEADER.fullmatch(name)
    return f'"kopt/{match[1]}"' if match else name


_IF_SIM = "#if defined(KOPT_SIM)"
_IF_NOT_SIM = "#if !defined(KOPT_SIM)"
_CPU_COMMENT = re.compile(
    r"^(?P<before>//.*\S) CPU bod(?:y|ies):.*\n(?:// .*\n)*"  # behind another sentence
    r"|^(?://\n)?// CPU bod(?:y|ies):.*\n(?:// .*\n)*",
    re.MULTILINE,
)


def without_simulator(text: str) -> str:
    """Return `text` as it reads where KOPT_SIM is not defined."""
    kept: list[str] = []
    open_branches: list[_Branch] = []
    for line in text.splitlines():
        word = line.strip()
        if word.startswith("#if"):
            parent = all(branch.is_kept for branch in open_branches)
            open_branches.append(_opened(word))
            if parent and not open_branches[-1].is_sim:
                kept.append(line)
        elif word.startswith(("#elif", "#else", "#endif")):
            written = _continued(line, open_branches)
            if written is not None and all(branch.is_kept for branch in open_branches[:-1]):
                kept.append(written)
            if word.startswith("#endif"):
                open_branches.pop()
        elif all(branch.is_kept for branch in open_branches):
            kept.append(line)
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept) + "\n")
    return _CPU_COMMENT.sub(lambda m: f"{m['before']}\n" if m["before"] else "", text)


class _Branch:
    """One open #if: whether it asks for the simulator, and whether its present part is kept."""

    def __init__(self, is_sim: bool, is_kept: bool) -> None:
        self.is_sim = is_sim
        self.is_kept = is_kept
        self.became_if = False
        """An `#elif` behind the simulator's branch was written as `#if`."""


def _opened(word: str) -> _Branch:
    if word == _IF_SIM:
        return _Branch(is_sim=True, is_kept=False)
    return _Branch(is_sim=word == _IF_NOT_SIM, is_kept=True)


def _continued(line: str, open_branches: list[_Branch]) -> str | None:
    """Return what stands for an #elif, #else or #endif; None for nothing."""
    branch, word = open_branches[-1], line.strip()
    if not branch.is_sim or branch.became_if:
        return line
    if word.startswith("#elif"):
        branch.is_kept = branch.became_if = True
        return line.replace("#elif", "#if", 1)
    if word.startswith("#else"):
        branch.is_kept = not branch.is_kept
    return None
