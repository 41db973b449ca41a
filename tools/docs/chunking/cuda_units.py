"""CUDA C++ as units: by the grammar where it is installed, else by the brace scanner.

Templates of sources (`.jinja`) are read as the C++ that they make.
"""

import re

from .cuda_tree import has_grammar, tree_units
from .gaps import filled, scanned
from .sizes import disjoint
from .units import SourceLines, Unit

_STATEMENT = re.compile(r"\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_EXPRESSION = re.compile(r"\{\{(.*?)\}\}")


def cuda_units(source: SourceLines) -> list[Unit]:
    """Return the units of a file in order; every line of code is in one."""
    units = tree_units(source) if has_grammar() else scanned(source)
    return filled(disjoint(units), source)


def as_cuda(template: str) -> str:
    """Return a Jinja template as C++ of the same lines: statements blank, expressions names."""
    text = _STATEMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), template)
    return _EXPRESSION.sub(lambda match: re.sub(r"\W+", "_", match[1].strip()) or "_", text)
