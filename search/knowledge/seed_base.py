"""The base that kopt ships with: documented technique knowledge, every gain of it a prior.

Four files, `seed/*.yaml`; each entry names its source. A seed that contradicts itself is a bug of
kopt and fails a test, not a user's run.
"""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from .base import KnowledgeBase
from .records import KnowledgeEntry, Pair, State, Technique

_FOLDER = Path(__file__).parent / "seed"
_FILES = ("techniques", "states", "priors", "pairs")


@cache
def load_seed(folder: Path = _FOLDER) -> KnowledgeBase:
    """Return the seed base: version 0, no evidence.

    Raises:
        ValueError: An entry stands there twice, or names what there is not.
    """
    told = {name: _read(folder, name) for name in _FILES}
    techniques = [Technique(id=name, **fields) for name, fields in told["techniques"].items()]
    states = [State(id=name, **fields) for name, fields in told["states"].items()]
    entries = [KnowledgeEntry.model_validate(_with_prior(item)) for item in told["priors"]]
    pairs = [Pair.model_validate(_with_prior(item)) for item in told["pairs"]]
    base = KnowledgeBase().with_items((*techniques, *states, *entries, *pairs))
    if len(base.held) < len(entries) + len(pairs):
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


def _with_prior(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an entry or a pair; gain, weight and source are its prior's."""
    prior = {name: item[name] for name in ("gain", "weight", "source")}
    return {**{name: item[name] for name in item.keys() - prior}, "prior": prior}
