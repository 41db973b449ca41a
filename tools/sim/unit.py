"""The translation unit that g++ compiles for the simulator: the candidate with CPU entries.

The source itself is what nvcc compiles, word for word, but for four things. `extern __shared__`:
static and dynamic shared memory are told apart by storage class on a CPU, so its qualifier is
exchanged; other words may stand among the two, in any order. `__shared__ alignas(16)`: g++ takes
`alignas` only in front of a storage class. `static __shared__`: the second word alone is a storage
class here. Inline PTX: what of it is known becomes C++ (ptx/).
"""

import re
from collections.abc import Mapping, Sequence

from .branches import ChosenSource
from .ptx.lowering import lower_ptx

UNIT_NAME = "candidate.cu"
"""The file name that g++'s messages and line tables use for the candidate."""

_WORD = r"\s+(?:(?:__align__|alignas)\s*\((?:[^()]|\([^()]*\))*\)|volatile\b|const\b)"
_EXTERN_SHARED = re.compile(
    rf"\bextern(?P<words>(?:{_WORD})*)(?P<space>\s+)__shared__\b"
    rf"|\b__shared__(?P<later_words>(?:{_WORD})*)(?P<later_space>\s+)extern\b"
)
_ALIGNED_SHARED = re.compile(
    r"\b(?P<qualifiers>(?:extern\s+)?(?:__shared__|KOPT_SIM_EXTERN_SHARED))(?P<space>\s+)"
    r"(?P<align>alignas\s*\((?:[^()]|\([^()]*\))*\))"
)
_MODULE_VARIABLE = re.compile(
    r"\b__device__\b(?P<type>(?:(?!__device__)[^;(){}=\[])*?)\b(?P<name>[A-Za-z_]\w*)\s*[\[=;{]"
)
_STATIC_SHARED = re.compile(r"\bstatic(\s+__shared__\b)|\b(__shared__\s+)static\b")
_DECLARED_NAME = re.compile(
    r"(?:(?!__shared__)[^;])*?\b([A-Za-z_]\w*)\s*\[\s*\](?:\s*\[[^\[\];]*\])*\s*;"
)


def make_unit(
    source: str | ChosenSource, defines: Mapping[str, int], kernels: Sequence[str]
) -> str:
    """Return the unit: defines, the candidate with its own line numbers, one entry per kernel."""
    chosen = ChosenSource(source) if isinstance(source, str) else source
    lines = [f"#define {name} {value}" for name, value in sorted(defines.items())]
    for number, header in chosen.includes:
        lines += [f'#line {number} "{UNIT_NAME}"', f"#include {header}"]
    lines += [f"#define {name} {value}" for name, value in sorted(chosen.values.items())]
    lines.append(f'#line 1 "{UNIT_NAME}"')
    text = _STATIC_SHARED.sub(r"\1\2", chosen.text)
    text = _EXTERN_SHARED.sub(_extern_shared, text)
    text = _ALIGNED_SHARED.sub(r"\g<align>\g<space>\g<qualifiers>", text)
    lines.append(lower_ptx(text.replace("\r\n", "\n")).rstrip("\n"))
    lines.append('#line 1 "kopt_entries"')
    for number, kernel in enumerate(kernels):
        lines.append(
            f'extern "C" void {entry_name(number)}(void** values) '
            f"{{ kopt_sim::invoke(&{kernel}, values); }}"
        )
    return "\n".join(lines) + "\n"


def _extern_shared(match: re.Match[str]) -> str:
    words = match["words"] or match["later_words"] or ""
    return f"extern{words}{match['space'] or match['later_space']}KOPT_SIM_EXTERN_SHARED"


def entry_name(number: int) -> str:
    """Return the C name of the entry of the `number`-th kernel."""
    return f"kopt_sim_entry_{number}"


def module_variables(source: str) -> dict[str, int]:
    """Return the names of `__device__` variables that are not constant, with their lines."""
    return {
        match["name"]: source.count("\n", 0, match.start("name")) + 1
        for match in _MODULE_VARIABLE.finditer(source)
        if not re.search(r"\bconst(expr)?\b", match["type"])
    }


def dynamic_shared_names(source: str) -> frozenset[str]:
    """Return the names of the `extern __shared__` arrays that `source` declares."""
    names: set[str] = set()
    for match in _EXTERN_SHARED.finditer(source):
        declared = _DECLARED_NAME.match(source, match.end())
        if declared:
            names.add(declared.group(1))
    return frozenset(names)
