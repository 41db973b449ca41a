"""The candidate's leading comment as records: the grammar of format 1, still unresolved.

`header_parser.py` reads it; `plan_resolver.py` puts numbers in. Expressions stay text here, each
already parsed once, so that a header that exists is syntactically whole.
"""

from typing import Literal

from pydantic import Field

from .record import Diagnostic, Record


class ArgumentTemplate(Record):
    """One entry of `args`: a name, or a typed integer expression."""

    name: str | None = None
    int_type: Literal["int32", "int64"] | None = None
    expression: str | None = None


class LaunchTemplate(Record):
    """One launch; `exprs` are tuples of 1 to 3 expressions."""

    kernel: str
    grid: tuple[str, ...]
    block: tuple[str, ...]
    cluster: tuple[str, ...] = ("1",)
    smem: str = "0"
    cooperative: bool = False
    pdl: bool = False
    carveout: Literal["default", "max_shared", "max_l1"] = "default"
    args: tuple[ArgumentTemplate, ...]
    line: int | None = None


class ScratchTemplate(Record):
    """One scratch buffer."""

    name: str
    dtype: str
    shape: tuple[str, ...]
    init: Literal["poison", "zero"] = "poison"
    line: int | None = None


class TensorMapTemplate(Record):
    """One TMA descriptor."""

    name: str
    tensor: str
    view: tuple[str, ...] | None = None
    box: tuple[str, ...]
    element_strides: tuple[str, ...] | None = None
    swizzle: Literal["none", "32", "64", "128"] = "none"
    interleave: Literal["none", "16", "32"] = "none"
    l2: Literal["none", "64", "128", "256"] = "none"
    fill: Literal["zero", "nan"] = "zero"
    line: int | None = None


class Variant(Record):
    """Launches for the workloads that satisfy `when`; the first match is taken."""

    when: str
    set: dict[str, int] = Field(default_factory=dict[str, int])
    launch: tuple[LaunchTemplate, ...]
    line: int | None = None


class CandidateHeader(Record):
    """The whole header. A single `launch` list is one variant whose `when` is "true"."""

    family: tuple[str, ...]
    note: str | None = None
    where: str = "true"
    specialize: tuple[str, ...] = ()
    tune: dict[str, tuple[int, ...]] = Field(default_factory=dict[str, tuple[int, ...]])
    """The first value of each is the default."""
    tune_where: tuple[str, ...] = ()
    fast_math: bool = True
    max_registers: int | None = None
    scratch: tuple[ScratchTemplate, ...] = ()
    tensor_maps: tuple[TensorMapTemplate, ...] = ()
    variants: tuple[Variant, ...]
    lines: dict[str, int] = Field(default_factory=dict[str, int])
    """The line of each top-level key of the header."""


class HeaderOutcome(Record):
    """A parsed header, or the diagnostics that say why there is none."""

    header: CandidateHeader | None
    diagnostics: tuple[Diagnostic, ...] = ()
