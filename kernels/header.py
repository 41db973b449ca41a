"""The candidate's leading comment as records: their fields are the grammar of format 1.

`header_parser.py` finds the comment and reads it; `plan_resolver.py` puts numbers in. Expressions
stay text here, each parsed once, so that a header that exists is syntactically whole.
"""

from math import prod
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from .dtypes import DTYPE_SIZE_BYTES
from .families import FAMILIES
from .header_scope import argument, declared, identifier, tune_name
from .record import Diagnostic, Record
from .yaml_types import (
    DIGITS,
    NAMED,
    TEXT,
    Flag,
    Mistake,
    Text,
    Unlike,
    YamlPlaced,
    condition,
    distinct,
    expression,
    expressions,
    integer,
    known,
)

FORMAT_VERSION = 1
MAX_TUNE_CHOICES = 65_536
MAX_MAP_RANK = 5
MAX_LAUNCHES = 1024
MAX_VARIANTS = 32
MAX_ARGUMENTS = 64


def _one_as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _nothing_as_default(value: object) -> object:
    return {} if value is None else value


Identifier = Annotated[Text, AfterValidator(identifier)]
TuneValue = Annotated[int, integer(-(2**31), 2**31 - 1)]


class ArgumentTemplate(Record):
    """One entry of `args`: a name, or a typed integer expression."""

    name: str | None = None
    int_type: Literal["int32", "int64"] | None = None
    expression: str | None = None


class LaunchTemplate(YamlPlaced):
    """One launch; each of its dimensions is 1 to 3 expressions."""

    kernel: Identifier
    grid: Annotated[tuple[str, ...], expressions("grid_values", 3)]
    block: Annotated[tuple[str, ...], expressions("values", 3)]
    cluster: Annotated[tuple[str, ...], expressions("values", 3)] = ("1",)
    smem: Annotated[str, expression("values")] = "0"
    pdl: Flag = False
    cooperative: Flag = False
    carveout: Literal["default", "max_shared", "max_l1"] = "default"
    args: Annotated[
        tuple[Annotated[ArgumentTemplate, BeforeValidator(argument)], ...],
        Field(max_length=MAX_ARGUMENTS),
    ]

    @field_validator("cooperative")
    @classmethod
    def _excludes_pdl(cls, value: bool, info: ValidationInfo) -> bool:
        if value and info.data.get("pdl"):
            raise Mistake("a cooperative launch excludes pdl; keep one of them")
        return value


class ScratchTemplate(YamlPlaced):
    """One scratch buffer."""

    name: Annotated[Identifier, declared("scratch")]
    dtype: Annotated[str, known(DTYPE_SIZE_BYTES, "dtype")]
    shape: Annotated[tuple[str, ...], expressions("values", 3)]
    init: Literal["poison", "zero"] = "poison"


class TensorMapTemplate(YamlPlaced):
    """One TMA descriptor."""

    name: Annotated[Identifier, declared("tensor map")]
    tensor: Annotated[str, known("mapped", "tensor")]
    view: Annotated[tuple[str, ...] | None, expressions("values", MAX_MAP_RANK)] = None
    box: Annotated[tuple[str, ...], expressions("values", MAX_MAP_RANK)]
    element_strides: Annotated[tuple[str, ...] | None, expressions("values", MAX_MAP_RANK)] = None
    swizzle: Annotated[Literal["none", "32", "64", "128"], DIGITS] = "none"
    interleave: Annotated[Literal["none", "16", "32"], DIGITS] = "none"
    l2: Annotated[Literal["none", "64", "128", "256"], DIGITS] = "none"
    fill: Literal["zero", "nan"] = "zero"


Launches = Annotated[tuple[LaunchTemplate, ...], Field(min_length=1, max_length=MAX_LAUNCHES)]


class Variant(YamlPlaced):
    """Launches for the workloads that satisfy `when`; the first match is taken."""

    when: Annotated[str, condition("axes")]
    set: dict[Annotated[str, known("tune", "tune name")], TuneValue] = Field(
        default_factory=dict[str, int]
    )
    launch: Launches


class Flags(Record):
    """How a candidate is compiled."""

    fast_math: Flag = True
    max_registers: Annotated[int | None, integer(16, 255)] = None


class CandidateHeader(Record):
    """The whole header. A single `launch` list is one variant whose `when` is "true" as well."""

    kopt: int = FORMAT_VERSION
    family: Annotated[
        tuple[Annotated[str, known(FAMILIES, "family")], ...],
        BeforeValidator(_one_as_list),
        Field(min_length=1),
        distinct("family"),
    ]
    note: Annotated[str | None, TEXT] = None
    where: Annotated[str, condition("axes")] = "true"
    specialize: Annotated[tuple[Annotated[str, known("axes", "axis")], ...], distinct("axis")] = ()
    tune: dict[
        Annotated[str, AfterValidator(tune_name)],
        Annotated[tuple[TuneValue, ...], Field(min_length=1), distinct("value")],
    ] = Field(default_factory=dict[str, tuple[int, ...]])
    """The first value of each is the default."""
    tune_where: tuple[Annotated[str, condition("conditions")], ...] = ()
    flags: Annotated[Flags, BeforeValidator(_nothing_as_default)] = Flags()
    scratch: Annotated[tuple[ScratchTemplate, ...], NAMED] = ()
    tensor_maps: Annotated[tuple[TensorMapTemplate, ...], NAMED] = ()
    launch: Launches = ()
    variants: Annotated[tuple[Variant, ...], Field(min_length=1, max_length=MAX_VARIANTS)] = ()
    lines: dict[str, int] = Field(default_factory=dict[str, int])
    """The line of each top-level key of the header."""

    @field_validator("kopt", mode="before")
    @classmethod
    def _known_version(cls, value: object) -> int:
        if type(value) is not int or value != FORMAT_VERSION:
            raise Unlike(f"format version {FORMAT_VERSION}")
        return value

    @field_validator("tune")
    @classmethod
    def _few_choices(cls, tune: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        choices = prod(len(values) for values in tune.values())
        if choices > MAX_TUNE_CHOICES:
            raise Mistake(f"{choices} combinations; at most {MAX_TUNE_CHOICES} are allowed")
        return tune

    @field_validator("variants")
    @classmethod
    def _only_the_last_always_holds(cls, variants: tuple[Variant, ...]) -> tuple[Variant, ...]:
        for place, variant in enumerate(variants):
            is_last = place == len(variants) - 1
            if is_last != (variant.when == "true"):
                wanted = (
                    "the last variant needs when: true" if is_last else "variants after it are dead"
                )
                raise Mistake(f"when is {variant.when[:80]!r}; {wanted}", at=(place,))
        return variants


class HeaderOutcome(Record):
    """A parsed header, or the diagnostics that say why there is none."""

    header: CandidateHeader | None
    diagnostics: tuple[Diagnostic, ...] = ()
