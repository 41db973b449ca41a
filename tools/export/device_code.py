"""A candidate's source as a file that is included inside a namespace, and the headers it needs.

Three things change: the header comment goes (the host code says what it said), `#include` lines
move to the file that includes this one, and `extern "C"` goes, so that several builds of one source
can be linked together. Nothing else of the author's text is touched.
"""

import re
from dataclasses import dataclass

from kopt.config.errors import ToolError
from kopt.kernels.source_lexer import logical_lines
from kopt.tools.cuda.include_tree import kopt_headers

from .conditional_text import without_simulator

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
