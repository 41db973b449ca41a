"""What a run says of itself where its candidates are made into samples."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kopt.search.knowledge.records import Signature


@dataclass(frozen=True)
class Placed:
    """Where a program that was profiled stands."""

    state: str
    """Id of its state."""
    signature: Signature


@dataclass(frozen=True)
class Teaching:
    """The run, and what is known beside its candidates."""

    run: str
    """What the ids of its samples begin with."""
    kernel: str
    """Kernel id."""
    op_type: str
    arch: str
    device: str
    """Name of the GPU, or sim."""
    toolkit: str
    """CUDA release, e.g. 13.2."""
    day: str
    """ISO date of the run's begin, UTC."""
    min_effect: float
    """Fraction of the speed below which a change is none."""
    catalogue: frozenset[str] = frozenset()
    """Techniques that the run's base knows: only their switches are switches."""
    placed: Mapping[int, Placed] = field(default_factory=dict[int, Placed])
    """By `seq` of the candidates that were profiled."""
    is_final: bool = False
    """Whether the run's last round has ended: what could still be split is taught as it is."""
