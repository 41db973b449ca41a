"""Names of one part's header in the whole: tune values, axes, kernels; its expressions with them.

Axes of a part have their names in the whole. What is an axis of one value in the part only is that
number in the whole.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from kopt.kernels.header import ArgumentTemplate, CandidateHeader
from kopt.kernels.problem import Problem

from .part_code import parameter_type

_WORD = re.compile(r"[A-Za-z_]\w*")
_LONGEST_TUNE = 32


@dataclass(frozen=True)
class PartNames:
    """How a part's candidate is called in the whole."""

    place: int
    """Of the part among all, from 1."""
    label: str
    """Beginning of its kernels' names, and its namespace."""
    problem: Problem
    header: CandidateHeader
    source: str
    whole: Problem

    @cached_property
    def tune(self) -> dict[str, str]:
        """New names of tune values."""
        found: dict[str, str] = {}
        for number, name in enumerate(self.header.tune):
            wanted = f"P{self.place}_{name}"
            fits = len(wanted) <= _LONGEST_TUNE
            found[name] = wanted if fits else f"P{self.place}_{name[:20]}_{number}"
        return found

    @cached_property
    def numbers(self) -> dict[str, str]:
        """Axes of the part that the whole has not, with their one value."""
        own = self.problem.workloads[0].axes
        known = {name for name in self.whole.axes if self.whole.axes[name] is None}
        known |= {name for name, text in self.whole.axes.items() if text and not text.isdigit()}
        return {name: str(own[name]) for name in self.problem.axes if name not in known}

    @cached_property
    def kernels(self) -> dict[str, str]:
        """New names of kernels."""
        launches = (one for variant in self.header.variants for one in variant.launch)
        return {one.kernel: f"{self.label}_{one.kernel}" for one in launches}

    def in_code(self) -> dict[str, str]:
        """Return new names of the identifiers of the source."""
        axes = {f"KOPT_{name}": number for name, number in self.numbers.items()}
        return {**self.kernels, **self.tune, **axes}

    def expression(self, text: str) -> str:
        """Return an expression or condition of the header in the names of the whole."""
        names = {**self.tune, **self.numbers}
        return _WORD.sub(lambda match: names.get(match[0], match[0]), text)

    def argument(
        self, given: ArgumentTemplate, kernel: tuple[str, int], wires: Mapping[str, str]
    ) -> str:
        """Return an argument as text of the header.

        Args:
            given: The part's.
            kernel: Name in the source, and place of the argument.
            wires: Buffers and tensor maps of the whole by the part's names.
        """
        if given.expression is not None:
            return f'{{{given.int_type}: "{self.expression(given.expression)}"}}'
        name = given.name or ""
        if name in wires:
            return wires[name]
        if name in self.numbers:
            return f"{{{parameter_type(self.source, *kernel)}: {self.numbers[name]}}}"
        return name
