"""The sources of an export as one CUDA text, for those who compile a text and no folder.

Includes of each other are put in place, each once but for the author's device code, which every
build holds in a namespace of its own. Includes of libraries go to the front, and each build's
macros end behind it.
"""

import re
from collections.abc import Mapping

_LOCAL = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"[^\n]*\n?', re.MULTILINE)
_SYSTEM = re.compile(r"^[ \t]*#[ \t]*include[ \t]*(<[^>\n]+>)[^\n]*\n?", re.MULTILINE)
_ONCE = re.compile(r"^#pragma once\n", re.MULTILINE)
_DEFINED = re.compile(r"^#define (\w+)", re.MULTILINE)


def one_source(sources: Mapping[str, str], order: tuple[str, ...], device: str) -> str:
    """Return one text of `sources`.

    Args:
        sources: By their path; they include each other by name.
        order: Those that are compiled, in the order in which they stand.
        device: The author's code, which each build includes between its macros.
    """
    seen: set[str] = set()
    parts: list[str] = []
    for name in order:
        own = _DEFINED.findall(sources[name]) if f'"{device}"' in sources[name] else []
        parts.append(_expanded(sources, name, device, seen))
        parts += [f"#undef {macro}\n" for macro in own]
    text = "\n".join(parts)
    front = dict.fromkeys(match[1] for match in _SYSTEM.finditer(text))
    includes = "".join(f"#include {name}\n" for name in front)
    return re.sub(r"\n{3,}", "\n\n", includes + "\n" + _SYSTEM.sub("", text))


def _expanded(sources: Mapping[str, str], name: str, device: str, seen: set[str]) -> str:
    def inserted(match: re.Match[str]) -> str:
        asked = _path_of(match[1], name)
        if asked not in sources:
            return match[0]
        if asked in seen:
            return ""
        if asked != device:
            seen.add(asked)
        return _expanded(sources, asked, device, seen)

    return _LOCAL.sub(inserted, _ONCE.sub("", sources[name]))


def _path_of(asked: str, includer: str) -> str:
    """Return the path of an included file: beside its includer, or from the front."""
    folder = includer.rpartition("/")[0]
    return f"{folder}/{asked}" if folder and "/" not in asked else asked
