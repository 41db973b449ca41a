"""base.yaml: small, in a stable order, and read back as what it was."""

import re
from dataclasses import replace
from functools import cache
from math import isclose

import pytest

from kopt.search.knowledge.base import KnowledgeBase, dump_base, parse_base
from kopt.search.knowledge.edits import AddNote
from kopt.search.knowledge.projection import extend
from kopt.search.knowledge.records import EntryKey, KnowledgeEntry, Prior
from kopt.search.knowledge.yaml_reader import read_base
from kopt.search.knowledge.yaml_writer import SIZE_LIMIT, render_complete, render_small, scalar
from support.knowledge_cases import (
    ENTRY,
    SEED,
    STATE,
    TECHNIQUE,
    changes_of,
    edit,
    projected,
    random_base,
    random_samples,
    sample,
)

pytestmark = pytest.mark.slow  # hundreds of bases are written

EVIL_TEXTS = (
    'quotes " and \\ and {braces}: [x], # no comment',
    "a new line\nschema: kopt.knowledge/9",
    "\u202eright to left, a bell \x07, a line separator \u2028, \x85 and \ufeff",
    "true",
    "null",
    "12",
    "1.5e3",
    "- item",
    "&anchor *alias !tag %directive",
    " blanks ",
    "astral 𝄞 and ü",
)


def _with_note(text: str) -> KnowledgeBase:
    return projected([(1, edit(AddNote, text=text))])


@pytest.mark.parametrize("text", EVIL_TEXTS)
def test_any_text_is_read_back_as_it_was(text: str) -> None:
    read = read_base(render_complete(_with_note(text)), "document")
    assert [note.text for note in read.entries[ENTRY].notes] == [text]


@pytest.mark.parametrize("text", EVIL_TEXTS)
def test_no_text_begins_a_line_of_its_own(text: str) -> None:
    lines = render_complete(_with_note(text)).splitlines()
    assert len(lines) == len(render_complete(_with_note("plain")).splitlines())


@pytest.mark.parametrize("seed", range(12))
def test_a_document_that_is_read_and_written_again_is_the_same(seed: int) -> None:
    document = render_complete(random_base(seed))
    assert render_complete(read_base(document, "document")) == document


@pytest.mark.parametrize("seed", range(12))
def test_json_keeps_a_base_to_the_last_bit(seed: int) -> None:
    base = random_base(seed)
    assert parse_base(dump_base(base)) == base


def test_a_complete_document_has_all_evidence() -> None:
    base = projected(changes_of(1, 40))
    read = read_base(render_complete(base), "document")
    assert read.entries.keys() == base.entries.keys()
    for key, entry in base.entries.items():
        for arch, origins in entry.evidence.items():
            known, found = origins["k1"], read.entries[key].evidence[arch]["k1"]
            assert (found.tries, found.seen) == (known.tries, known.seen)
            assert isclose(found.mean, known.mean, rel_tol=1e-5)


def test_the_shipped_base_has_its_sources_in_the_file() -> None:
    text = render_small(SEED, SEED)
    assert all(scalar(technique.source) in text for technique in SEED.techniques.values())
    assert all(scalar(state.description) in text for state in SEED.states.values())
    assert read_base(text, "base.yaml") == SEED


@cache
def _of_tries(tries: int) -> KnowledgeBase:
    return projected(list(enumerate(random_samples(5, tries), start=1)))


def test_a_mature_base_is_whole_in_its_file_and_within_its_size() -> None:
    base = _of_tries(1000)  # all that ships tried on a GPU and on sim, and 46 entries more
    text = render_small(base, SEED)
    assert len(text.encode()) <= SIZE_LIMIT
    read = read_base(text, "base.yaml")
    assert {key: _tries(entry) for key, entry in read.entries.items()} == {
        key: _tries(entry) for key, entry in base.entries.items()
    }
    assert (read.states, read.techniques) == (base.states, base.techniques)


def test_an_overgrown_base_leaves_out_what_was_tried_least_and_says_so() -> None:
    base = _of_tries(3000)
    text = render_small(base, SEED)
    assert 0.99 * SIZE_LIMIT < len(text.encode()) <= SIZE_LIMIT
    assert re.search(r"^# \d+ items with the fewest tries are left out", text, re.MULTILINE)
    read = read_base(text, "base.yaml")
    kept = {(key, arch) for key, entry in read.entries.items() for arch in entry.evidence}
    tries = {
        (key, arch): n for key, entry in base.entries.items() for arch, n in _tries(entry).items()
    }
    gone = [n for body, n in tries.items() if body not in kept]
    assert gone and max(gone) <= min(tries[body] for body in kept)


@pytest.mark.parametrize("names", [100, 1000])
def test_a_flood_of_names_and_priors_leaves_what_ships_and_evidence(names: int) -> None:
    base = projected(changes_of(1, 40))
    states = {f"flood_{n:04}": SEED.states[STATE] for n in range(names)}
    flood = {
        name: one.model_copy(update={"id": name, "description": "x" * 300, "is_discovered": True})
        for name, one in states.items()
    }
    prior = Prior(gain=1.0, weight=1.0, source="x" * 300)
    told: dict[EntryKey, KnowledgeEntry] = {
        (name, (TECHNIQUE,)): KnowledgeEntry(state=name, techniques=(TECHNIQUE,), prior=prior)
        for name in flood
    }
    flooded = replace(base, states={**base.states, **flood}, entries={**base.entries, **told})
    text = render_small(flooded, SEED)
    assert len(text.encode()) <= SIZE_LIMIT
    read = read_base(text, "base.yaml")
    assert {key: _tries(one) for key, one in read.entries.items() if one.evidence} == {
        key: _tries(one) for key, one in base.entries.items() if one.evidence
    }


def _tries(entry: KnowledgeEntry) -> dict[str, int]:
    return {arch: origins["k1"].tries for arch, origins in entry.evidence.items()}


def test_a_try_changes_few_lines_of_the_file() -> None:
    base = projected(changes_of(1, 12))
    more = extend(base, [(base.version + 1, sample(99))], base.version + 1)
    before = set(render_small(base, SEED).splitlines())
    after = set(render_small(more, SEED).splitlines())
    assert len(after - before) <= 3  # the evidence, the version, the origins
