"""The records of the knowledge base: what was tried, in which state, and what came of it.

Gains are natural logarithms of speed ratios everywhere: +0.18 is 1.2x faster, and gains of steps
add up. Nothing here decides or computes; `policy/` predicts, `projection.py` folds.
"""

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field

from kopt.kernels.profile_result import BottleneckName, SuspectName
from kopt.kernels.record import Record
from kopt.kernels.status import Provenance, Status

Outcome = Literal["gained", "lost", "within_noise", "failed"]
OUTCOMES: tuple[str, ...] = get_args(Outcome)
"""Each is a count of `Evidence`."""
Category = Literal["memory", "compute", "latency", "general"]

Identifier = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{1,63}$")]
"""Id of a state or a technique: lower-case words joined by underscores."""
Techniques = Annotated[tuple[Identifier, ...], Field(min_length=1, max_length=4)]
"""One; several are a composite, in the order in which they were applied."""
WORDS_LIMIT = 400
Words = Annotated[str, Field(max_length=WORDS_LIMIT)]
"""Text for people and models: data, never an instruction."""
Name = Annotated[str, Field(pattern=r"^[!-~]{1,160}$")]
"""Name of a sample, a kernel or a run: visible ASCII."""
Word = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
"""One that rules know: a trait, a need."""
Several = Field(max_length=32)
"""Most words or names of a field: more than any rule or model gives."""
Count = Annotated[int, Field(ge=0, le=1_000_000_000)]
"""A count; larger ones are refused, so that sums and powers stay finite."""
Finite = Annotated[float, Field(allow_inf_nan=False)]

NAME_LIMIT = 256
"""States, or techniques, of a base: every run is told the techniques that can apply to it."""
NOTE_LIMIT = 4
"""How many notes an entry keeps: the latest."""
SEEN_LIMIT = 3
"""How many evidence references an entry shows."""
GAIN_LIMIT = 1.5
"""ln ratio: the largest gain or loss that a sample teaches or a prior claims, 4.5x; larger ones are
clamped."""
MEAN_LIMIT = 2 * GAIN_LIMIT
"""ln ratio: of a pair, which holds differences of gains; a file that claims more is refused."""
PRIOR_WEIGHT_LIMIT = 2.0
"""Pseudo-tries: two confirmed tries outweigh any prior."""


class ProfileSignature(Record):
    """Bottleneck, suspects and traits of a program's profile: the words that states are made of."""

    bottleneck: BottleneckName | Literal["unknown"]
    suspects: tuple[SuspectName, ...] = ()
    """The main one first."""
    traits: Annotated[tuple[Word, ...], Several] = ()
    """Static facts as words, sorted: spills, low_occupancy, part_wave …"""
    provenance: Provenance
    """measured where counters and times of a GPU decided, else estimated."""


class Sample(Record):
    """One application of a technique to a program, and what came of it: a row of the replay buffer.

    A result within noise has `measured` and `interval`, but teaches no gain.
    """

    id: Name
    """`run/seq`, or `run/seq/SWITCH` of an ablation: the same try is never learned twice."""
    run: Name
    kernel: Name
    """Kernel id."""
    op_type: str
    arch: str = Field(pattern=r"^[a-z0-9_]{1,32}$")
    """e.g. sm_90a."""
    device: str
    """Name of the GPU, or sim."""
    toolkit: str
    """CUDA release, e.g. 13.2."""
    state: Identifier
    """State of the program before."""
    techniques: Techniques
    previous: Identifier | None = None
    """Technique that made the program before; None for a starting program."""
    signature_before: ProfileSignature | None = None
    signature_after: ProfileSignature | None = None
    before: str
    """Candidate id: digest of the source before."""
    after: str
    """Candidate id: digest of the source after."""
    predicted: Finite | None = None
    """ln ratio that was predicted when the technique was drawn."""
    predicted_interval: tuple[Finite, Finite] | None = None
    """95% interval of the result that was predicted then, ln ratio."""
    measured: Finite | None = None
    """ln(speed after / speed before); None if the program after does not work."""
    interval: tuple[Finite, Finite] | None = None
    """95% interval of `measured`."""
    provenance: Literal[Provenance.MEASURED, Provenance.ESTIMATED, Provenance.UNAVAILABLE]
    """Provenance of `measured`; for a failure, of the speeds that would have been compared."""
    outcome: Outcome
    status: Status
    """How the evaluation of the program after ended."""
    day: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")
    """ISO date, UTC."""


class State(Record):
    """A performance state: programs that are held back in the same way."""

    id: Identifier
    bottleneck: BottleneckName | Literal["unknown"]
    suspects: Annotated[tuple[SuspectName, ...], Several] = ()
    traits: Annotated[tuple[Word, ...], Several] = ()
    description: Words = ""
    source: Words = ""
    """Its document; for a discovered state, the sample or run that met it first."""
    inherits: Identifier | None = None
    """The state whose knowledge counts here too, discounted."""
    is_discovered: bool = False


class Technique(Record):
    """A change to a program, finer than a family: every technique belongs to one family."""

    id: Identifier
    family: str
    """One of kopt.kernels.families."""
    category: Category
    description: Words
    needs: Annotated[tuple[Word, ...], Several] = ()
    """Applicability words (knowledge/states); all must hold for a kernel."""
    prepares: Annotated[tuple[Identifier, ...], Several] = ()
    """Techniques that work better after this one."""
    source: Words
    is_discovered: bool = False


class Evidence(Record):
    """The results of one origin's samples for one entry on one architecture.

    Sufficient statistics: they merge without the samples.
    """

    version: Count = 0
    """Version of its origin's base at which it changed last."""
    tries: Count = 0
    """gained + lost + within_noise + failed."""
    gained: Count = 0
    lost: Count = 0
    within_noise: Count = 0
    failed: Count = 0
    weight: Finite = Field(default=0.0, ge=0.0)
    """Sum of the weights of the gains below."""
    mean: Finite = Field(default=0.0, ge=-MEAN_LIMIT, le=MEAN_LIMIT)
    """Weighted mean of the ln ratios of what gained or lost."""
    m2: Finite = Field(default=0.0, ge=0.0)
    """Weighted sum of squared deviations from `mean`."""
    kernels: Annotated[tuple[Name, ...], Field(max_length=SEEN_LIMIT)] = ()
    """The last few kernels that it was tried on, latest last."""
    seen: Annotated[tuple[Name, ...], Field(max_length=SEEN_LIMIT)] = ()
    """Ids of the last samples, latest last."""


class Prior(Record):
    """An expectation before any try: documented, never measured."""

    gain: float = Field(ge=-GAIN_LIMIT, le=GAIN_LIMIT)
    """ln ratio."""
    weight: float = Field(ge=0.0, le=PRIOR_WEIGHT_LIMIT)
    """Pseudo-tries it counts as."""
    source: Words


class Note(Record):
    """A remark on an entry."""

    version: Count = 0
    """Version of the base at which it was made; an entry's notes are in its order."""
    text: Words
    evidence: tuple[Name, ...] = ()
    """Sample ids it rests on."""


EntryKey = tuple[str, tuple[str, ...]]
"""State and techniques."""
PairKey = tuple[str, str]
"""Technique before and technique after."""
ESTIMATED = " estimated"
"""How the architecture key of evidence from the simulator's model ends."""
ArchKey = Annotated[str, Field(pattern=rf"^[a-z0-9_]{{1,32}}({ESTIMATED})?$")]
Origin = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]{1,31}$")]
ByArchitecture = Mapping[ArchKey, Mapping[Origin, Evidence]]
"""Architecture key (`arch_key`) -> origin -> evidence."""


class KnowledgeEntry(Record):
    """Prior, evidence and notes of techniques in a state."""

    state: Identifier
    techniques: Techniques
    prior: Prior | None = None
    evidence: ByArchitecture = Field(default_factory=dict)
    notes: Annotated[tuple[Note, ...], Field(max_length=NOTE_LIMIT)] = ()
    is_deprecated: bool = False
    """Not drawn any more, kept for what it taught."""

    @property
    def key(self) -> EntryKey:
        """Its key in a base."""
        return self.state, self.techniques

    @property
    def local_name(self) -> str:
        """Its name among those of its state: `technique + technique`."""
        return " + ".join(self.techniques)

    @property
    def name(self) -> str:
        """Its name: `state: technique + technique`."""
        return f"{self.state}: {self.local_name}"


class Pair(Record):
    """Prior and evidence of `after` when `before` came just before it, in any state."""

    before: Identifier
    after: Identifier
    prior: Prior | None = None
    evidence: ByArchitecture = Field(default_factory=dict)
    notes: ClassVar[tuple[Note, ...]] = ()
    is_deprecated: ClassVar[bool] = False

    @property
    def key(self) -> PairKey:
        """Its key in a base."""
        return self.before, self.after

    @property
    def name(self) -> str:
        """Its name: `technique before technique`."""
        return f"{self.before} before {self.after}"

    local_name = name


def arch_key(arch: str, provenance: Provenance) -> str:
    """Return the key of evidence: `sm_90a` if measured there, `sm_100a estimated` otherwise.

    Estimates of the simulator are never mixed with what a GPU measured.
    """
    return arch if provenance is Provenance.MEASURED else f"{arch}{ESTIMATED}"


SWITCH_PREFIX = "WITH_"
MAX_TECHNIQUE_CHARACTERS = 27
"""A tune name has 32 characters at most (docs/candidates.md)."""


def switch_of(technique: str) -> str:
    """Return the tune name by which a candidate leaves `technique` out."""
    return SWITCH_PREFIX + technique.upper()


def technique_of(name: str) -> str | None:
    """Return which technique the tune value `name` switches; None for any other tune value."""
    technique = name.removeprefix(SWITCH_PREFIX).lower()
    is_switch = name.startswith(SWITCH_PREFIX) and re.fullmatch(r"[a-z][a-z0-9_]+", technique)
    return technique if is_switch else None
