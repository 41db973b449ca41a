"""The seed's loader refuses a seed that contradicts itself."""

from pathlib import Path

import pytest

from kopt.search.knowledge.seed_base import load_seed, seed_digest

TECHNIQUES = """techniques:
  vector_loads: {family: vectorization, category: memory, description: d, source: s}
  row_tiles: {family: coarsening, category: memory, prepares: [vector_loads], description: d,
    source: s}
"""
STATES = (
    "states: {slow: {bottleneck: memory_bound}, slower: {bottleneck: l2_bound, inherits: slow}}\n"
)
PRIORS = "priors: [{state: slow, techniques: [vector_loads], gain: 0.1, weight: 1, source: s}]\n"
PAIRS = "pairs: [{before: row_tiles, after: vector_loads, gain: 0.05, weight: 1, source: s}]\n"


def _seed(folder: Path, **files: str) -> Path:
    texts = {"techniques": TECHNIQUES, "states": STATES, "priors": PRIORS, "pairs": PAIRS}
    for name, text in {**texts, **files}.items():
        (folder / f"{name}.yaml").write_text(text, "utf-8")
    return folder


def test_a_seed_has_priors_and_no_evidence(tmp_path: Path) -> None:
    seed = load_seed(_seed(tmp_path))
    entry, pair = seed.entries["slow", ("vector_loads",)], seed.pairs["row_tiles", "vector_loads"]
    assert entry.prior is not None and entry.prior.gain == 0.1
    assert pair.prior is not None and pair.prior.gain == 0.05
    assert (entry.evidence, pair.evidence, seed.version) == ({}, {}, 0)


@pytest.mark.parametrize(
    ("name", "old", "new", "named"),
    [
        ("techniques", "family: vectorization", "family: magic", "magic"),
        ("techniques", "[vector_loads]", "[magic]", "magic"),
        ("states", "inherits: slow", "inherits: nowhere", "nowhere"),
        ("priors", "state: slow", "state: nowhere", "nowhere"),
        ("priors", "[vector_loads]", "[vector_loads, magic]", "magic"),
        ("pairs", "after: vector_loads", "after: magic", "magic"),
        ("priors", "gain: 0.1", "gain: 9.9", "gain"),
        ("techniques", "source: s}\n  row", "}\n  row", "source"),
    ],
)
def test_a_seed_that_contradicts_itself_is_a_bug(
    tmp_path: Path, name: str, old: str, new: str, named: str
) -> None:
    text = {"techniques": TECHNIQUES, "states": STATES, "priors": PRIORS, "pairs": PAIRS}[name]
    assert old in text
    folder = _seed(tmp_path, **{name: text.replace(old, new, 1)})
    with pytest.raises(ValueError, match=named):
        load_seed(folder)


def test_a_prior_that_stands_there_twice_is_a_bug(tmp_path: Path) -> None:
    one = PRIORS.removeprefix("priors: [").removesuffix("]\n")
    with pytest.raises(ValueError, match="twice"):
        load_seed(_seed(tmp_path, priors=f"priors: [{one}, {one}]\n"))


def test_any_byte_of_the_seed_changes_its_digest(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    digests = {seed_digest(_seed(one)), seed_digest(_seed(other, pairs=PAIRS + "\n"))}
    assert len(digests) == 2
