"""How often the first five hits have what was asked for.

`queries.yaml` is the development set: lexicon and families.md were written with it in sight, one
fault of the ranking at a time. `held_out_queries.yaml` was measured once they were done. The
thresholds lie a few queries below what was measured (docs/search.md), because pages come and go.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from kopt.config.settings import Settings
from kopt.tools.docs.own.corpus import current_corpus
from kopt.tools.docs.query.search import search_documents
from kopt.tools.docs.records import Hit, SearchRequest
from support.quick_cases import first_quick

FIRST = 5


@dataclass(frozen=True)
class Scores:
    """Means over a set of queries."""

    recall: float
    """Of what is wanted, the share in the first five."""
    success: float
    """Queries with at least one wanted thing in the first five."""
    reciprocal_rank: float
    """Of the first wanted thing, 0 beyond ten."""
    missed: tuple[str, ...]


def _queries(name: str) -> list[tuple[str, list[set[str]]]]:
    entries = yaml.safe_load((Path(__file__).parent / name).read_text("utf-8"))
    return [(entry["query"], [set(group) for group in entry["wants"]]) for entry in entries]


def _places(hit: Hit) -> set[str]:
    """Return the names under which the sets call a hit: file, file:symbol, file:heading."""
    file = hit.path.rsplit("/", 1)[1]
    return {f"{file}:", f"{file}:{hit.symbol}", f"{file}:{hit.title.split(': ', 1)[-1]}"}


def _scores(name: str, settings: Settings) -> Scores:
    recalls: list[float] = []
    ranks: list[float] = []
    missed: list[str] = []
    queries = _queries(name)
    for query, wants in queries:
        hits = search_documents(SearchRequest(query=query, k=10, max_tokens=20_000), settings).hits
        found = [{at for at, want in enumerate(wants) if want & _places(hit)} for hit in hits]
        recall = len(set[int]().union(*found[:FIRST])) / len(wants)
        recalls.append(recall)
        ranks.append(next((1 / rank for rank, one in enumerate(found, start=1) if one), 0.0))
        if recall < 1:
            missed.append(query)
    return Scores(
        recall=sum(recalls) / len(queries),
        success=sum(recall > 0 for recall in recalls) / len(queries),
        reciprocal_rank=sum(ranks) / len(queries),
        missed=tuple(missed),
    )


@pytest.mark.parametrize(
    ("name", "recall", "success", "reciprocal_rank"),
    first_quick(
        [("queries.yaml", 0.88, 0.88, 0.80), ("held_out_queries.yaml", 0.80, 0.80, 0.65)], 1
    ),
)
def test_the_first_five_hits_have_what_was_asked_for(
    shared_docs: Settings, name: str, recall: float, success: float, reciprocal_rank: float
) -> None:
    scores = _scores(name, shared_docs)
    assert scores.recall >= recall, scores
    assert scores.success >= success, scores
    assert scores.reciprocal_rank >= reciprocal_rank, scores


@pytest.mark.parametrize("name", ["queries.yaml", "held_out_queries.yaml"])
def test_every_wanted_file_is_in_the_corpus(shared_docs: Settings, name: str) -> None:
    files = {file.path.rsplit("/", 1)[1] for file in current_corpus(shared_docs).files}
    wanted = {
        place.split(":")[0] for _, wants in _queries(name) for want in wants for place in want
    }
    assert wanted <= files
