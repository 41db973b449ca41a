"""Samples, edits and whole bases for tests of the knowledge base, from words or from a seed."""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

from kopt.kernels.record import Record
from kopt.kernels.status import Provenance, Status
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.edits import AddEntry, AddNote, AdjustPrior, Deprecate, Edit
from kopt.search.knowledge.projection import LedgerChange, LedgerContent, project
from kopt.search.knowledge.records import Sample
from kopt.search.knowledge.seed_base import load_seed

_Edit = TypeVar("_Edit", bound=Record)
SEED = load_seed()
STATE = "dram_saturated"
TECHNIQUE = "row_in_registers"
RUN = "run-20260101-120000-000"
ENTRY = (STATE, (TECHNIQUE,))
ON_GPU: dict[str, Any] = {"provenance": Provenance.MEASURED, "device": "NVIDIA H100"}
ON_SIM: dict[str, Any] = {"provenance": Provenance.ESTIMATED, "device": "sim", "interval": None}


def sample(number: int = 1, **fields: Any) -> Sample:
    """Return a measured gain of `TECHNIQUE` in `STATE`, other where `fields` say so."""
    run = fields.get("run", RUN)
    known: dict[str, Any] = {
        "id": f"{run}/{number}",
        "run": RUN,
        "kernel": "add_rmsnorm_fp4quant_b128xh2048",
        "op_type": "add_rmsnorm_fp4quant",
        "arch": "sm_90a",
        "toolkit": "13.2",
        "state": STATE,
        "techniques": (TECHNIQUE,),
        "before": "a" * 64,
        "after": "b" * 64,
        "measured": 0.1,
        "interval": (0.08, 0.12),
        "outcome": "gained",
        "status": Status.PASSED,
        "day": "2026-01-01",
    }
    return Sample.model_validate({**known, **ON_GPU, **fields})


def edit(kind: type[_Edit], **fields: Any) -> _Edit:
    """Return an edit of `ENTRY` by a user, other where `fields` say so."""
    known: dict[str, Any] = {"reason": "a reason", "author": "user"}
    if "techniques" in kind.model_fields:
        known |= {"state": STATE, "techniques": (TECHNIQUE,)}
    return kind.model_validate({**known, **fields})


def random_samples(seed: int, count: int, run: str = RUN) -> list[Sample]:
    """Return tries of many techniques in many states, half of them on a GPU."""
    draw = random.Random(seed)
    entries, states = list(SEED.entries), list(SEED.states)
    techniques = list(SEED.techniques)
    samples: list[Sample] = []
    for number in range(count):
        state, names = draw.choice(entries)
        if draw.random() < 0.05:
            state, names = draw.choice(states), (draw.choice(techniques),)
        outcome = draw.choice(("gained", "gained", "lost", "within_noise", "failed"))
        gain = {"gained": 0.15, "lost": -0.1, "within_noise": 0.001}.get(outcome)
        gain = None if gain is None else gain * draw.uniform(0.5, 2.0)
        place = ON_GPU if draw.random() < 0.5 else ON_SIM
        fields = {
            **place,
            "run": run,
            "state": state,
            "techniques": names,
            "previous": draw.choice((None, None, *techniques[:3])),
            "kernel": draw.choice(("rope_quantize_fp8_n128xh128", "silu_and_mul_b8xh14336")),
            "outcome": outcome,
            "measured": gain,
            "status": Status.PASSED if gain is not None else Status.INCORRECT,
        }
        if gain is None or place is ON_SIM:
            fields["interval"] = None
        else:
            fields["interval"] = (gain - 0.02, gain + 0.02)
        samples.append(sample(number, **fields))
    return samples


def random_edits(seed: int, count: int) -> list[Edit]:
    """Return edits of entries that the seed has."""
    draw = random.Random(seed)
    edits: list[Edit] = []
    for number in range(count):
        state, techniques = draw.choice(list(SEED.entries))
        words: dict[str, Any] = {
            "state": state,
            "techniques": techniques,
            "reason": f"reason {seed}.{number}",
            "author": "rule",
        }
        kind = draw.choice((AddNote, AdjustPrior, Deprecate, AddEntry))
        if kind is AddNote:
            words["text"] = f"note {seed}.{number}"
        elif kind is AdjustPrior:
            words |= {"gain": draw.choice((0.1, -0.1, 0.2)), "weight": draw.choice((0.5, 1.0))}
        elif kind is AddEntry:
            words["techniques"] = (draw.choice(list(SEED.techniques)), "warp_shuffles")
            words |= {"gain": draw.uniform(-0.2, 0.4), "weight": 1.0}
        edits.append(kind(**words))
    return edits


@cache
def changes_of(seed: int, count: int) -> tuple[LedgerChange, ...]:
    """Return samples and edits in an order that the seed decides, a version each."""
    both = [*random_samples(seed, count), *random_edits(seed, count // 4)]
    random.Random(seed).shuffle(both)
    return tuple(enumerate(both, start=1))


def projected(
    changes: Sequence[LedgerChange], origin: str = "k1", imports: Sequence[KnowledgeBase] = ()
) -> KnowledgeBase:
    """Return the base that `changes` make of the shipped seed."""
    version = max((at for at, _ in changes), default=0)
    return project(SEED, LedgerContent(origin, version, changes, imports))


@cache
def random_base(seed: int) -> KnowledgeBase:
    """Return one of a few homes at one of its versions, which may have imported another home.

    A few are of a home that was copied and went apart from the copy: same origin and version.
    """
    draw = random.Random(seed)
    home, version = draw.choice((1, 2)), draw.choice((0, 12, 30))
    imports = [random_base(seed * 31 + 1)] if draw.random() < 0.3 and seed < 1000 else []
    base = projected(changes_of(home, 24)[:version], f"k{home}", imports)
    if draw.random() < 0.4:
        apart = projected(changes_of(home + 10, 24)[:version], f"k{home}")
        return replace(apart, version=base.version, origins=base.origins)
    return base
