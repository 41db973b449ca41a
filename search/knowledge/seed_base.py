"""The base that kopt ships with: documented technique knowledge, every gain of it a prior.

Four files, `seed/*.yaml`; each entry names its source. A seed that contradicts itself is a bug of
kopt and fails a test, not a user's run.
"""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from kopt.kernels.record import Record
from kopt.search.knowledge.base import KnowledgeBase, entry_key, pair_key

from .records import Identifier, KnowledgeEntry, Pair, Prior, State, Technique, Techniques, Words

_FOLDER = Path(__file__).parent / "seed"
_FILES = ("techniques", "states", "priors", "pairs")


class _SeedPrior(Record):
    """An item of priors.yaml."""

    state: Identifier
    techniques: Techniques
    gain: float
    weight: float
    source: Words


class _SeedPair(Record):
    """An item of pairs.yaml."""

    before: Identifier
    after: Identifier
    gain: float
    weight: float
    source: Words


@cache
def load_seed(folder: Path = _FOLDER) -> KnowledgeBase:
    """Return the seed base: version 0, no evidence.

    Raises:
        ValueError: An entry stands there twice, or names what there is not.
    """
    techniques = {
        name: Technique.model_validate({"id": name, **fields})
        for name, fields in _read(folder, "techniques").items()
    }
    states = {
        name: State.model_validate({"id": name, **fields})
        for name, fields in _read(folder, "states").items()
    }
    priors = [_SeedPrior.model_validate(item) for item in _read(folder, "priors")]
    pairs = [_SeedPair.model_validate(item) for item in _read(folder, "pairs")]
    base = KnowledgeBase(
        states=dict(sorted(states.items())),
        techniques=dict(sorted(techniques.items())),
        entries=dict(sorted((entry_key(entry), entry) for entry in map(_entry, priors))),
        pairs=dict(sorted((pair_key(pair), pair) for pair in map(_pair, pairs))),
    )
    if len(base.entries) < len(priors) or len(base.pairs) < len(pairs):
        raise ValueError("an entry or a pair of the seed base stands there twice")
    if unknown := base.undefined():
        raise ValueError(f"the seed base names what it does not define: {sorted(unknown)}")
    return base


@cache
def seed_digest(folder: Path = _FOLDER) -> str:
    """Return what changes whenever a byte of the seed does."""
    data = b"\0".join((folder / f"{name}.yaml").read_bytes() for name in _FILES)
    return hashlib.sha256(data).hexdigest()


def _read(folder: Path, name: str) -> Any:
    import yaml  # a base that is already projected needs none

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = (folder / f"{name}.yaml").read_text("utf-8")
    return yaml.load(text, Loader=loader)[name]


def _entry(item: _SeedPrior) -> KnowledgeEntry:
    prior = Prior(gain=item.gain, weight=item.weight, source=item.source)
    return KnowledgeEntry(state=item.state, techniques=item.techniques, prior=prior)


def _pair(item: _SeedPair) -> Pair:
    prior = Prior(gain=item.gain, weight=item.weight, source=item.source)
    return Pair(before=item.before, after=item.after, prior=prior)
