"""Print how well and how fast `search_documents` answers the development set.

Its questions are those of queries.yaml, whose topics were chosen, of drawn.yaml and of goals.yaml.

Needs a built library: `kopt docs build`, under the KOPT_HOME of this run. Judged places that the
index no longer has are named first: they count as answers that cannot be found.

    .venv/bin/python benchmarks/retrieval/bench_retrieval.py [--save FILE] [--against FILE]
    .venv/bin/python benchmarks/retrieval/bench_retrieval.py --show goal-nvfp4
    .venv/bin/python benchmarks/retrieval/bench_retrieval.py --held-out
    .venv/bin/python benchmarks/retrieval/bench_retrieval.py --history    # needs no library
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import yaml
from judged_set import (
    DRAWN,
    GOALS,
    HELD_OUT,
    QUERIES,
    JudgedQuery,
    found_groups,
    judged_queries,
    stale_places,
)
from rank_metrics import DEPTH, Scores, bootstrap_interval, mean_scores, scores

from kopt.config.settings import Settings, settings_from_environment
from kopt.tools.docs.indexing.index_meta import library_index_path
from kopt.tools.docs.library_index.assembly import all_chunks
from kopt.tools.docs.query.request import MOST_TOKENS
from kopt.tools.docs.query.search import search_documents
from kopt.tools.docs.records import Hit, SearchRequest

HISTORY = Path(__file__).with_name("history.yaml")
REPEATS = 3
COLUMNS = ("NDCG@10", "R@5", "MRR@10", "S@1", "S@5")
FILES = ("queries", "drawn", "goals")
HALVES = ("tune", "check", "first", "second")
PARTS = ("goals, tune", "goals, check")
STYLES = ("identifier", "natural", "goal", "item")


@dataclass(frozen=True)
class Answered:
    """One question with what came back."""

    judged: JudgedQuery
    hits: tuple[Hit, ...]
    elapsed_ms: float
    """Least of the repeats, warm."""

    @property
    def scores(self) -> Scores:
        """How good the hits are."""
        return scores(
            [found_groups(self.judged, hit) for hit in self.hits], len(self.judged.groups)
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure search_docs on the development set.")
    parser.add_argument("--save", type=Path, help="write the scores of each question")
    parser.add_argument("--against", type=Path, help="compare with what --save wrote earlier")
    parser.add_argument("--show", metavar="ID", help="explain one question's hits and misses")
    parser.add_argument("--held-out", action="store_true", help="the questions of held_out.yaml")
    parser.add_argument("--history", action="store_true", help="print what was measured earlier")
    options = parser.parse_args()
    if options.history:
        print_history(HISTORY)
        return
    settings = settings_from_environment()
    files = [HELD_OUT] if options.held_out else [QUERIES, DRAWN, GOALS]
    queries = [query for file in files for query in judged_queries(file)]
    if options.show:
        show(answered(named(queries, options.show), settings))
        return
    for place in stale_places(queries, all_chunks(settings)):
        print(f"not in the index: {place.source}:{place.path}:{place.name}", file=sys.stderr)
    started = time.perf_counter()
    answered(queries[0], settings, repeats=1)
    first_s = time.perf_counter() - started
    run = [answered(query, settings) for query in queries]
    if options.save:
        saved = {one.judged.id: asdict(one.scores) for one in run}
        options.save.write_text(json.dumps(saved, indent=1), encoding="utf-8")
    if options.against:
        print_differences(run, json.loads(options.against.read_text("utf-8")))
    print_cost(run, first_s, settings)
    print_table(run)
    print_intervals(run)


def named(queries: Sequence[JudgedQuery], wanted: str) -> JudgedQuery:
    """Return the question with the id `wanted`."""
    for query in queries:
        if query.id == wanted:
            return query
    raise SystemExit(f"no question {wanted!r}; there are {', '.join(one.id for one in queries)}")


def answered(judged: JudgedQuery, settings: Settings, repeats: int = REPEATS) -> Answered:
    """Return the first ten hits of one question, from this machine's index alone."""
    request = SearchRequest(query=judged.query, k=DEPTH, max_tokens=MOST_TOKENS, backend="embedded")
    results = [search_documents(request, settings) for _ in range(repeats)]
    return Answered(judged, results[0].hits, min(one.elapsed_ms for one in results))


def show(one: Answered) -> None:
    """Print which hits are answers, which are not, and which answers are missing."""
    print(f"{one.judged.query}\n")
    seen = set[int]()
    for rank, hit in enumerate(one.hits, start=1):
        groups = found_groups(one.judged, hit)
        mark = "new " if groups - seen else "seen" if groups else "-   "
        seen |= groups
        print(
            f"{rank:>2} {mark} {hit.source}:{hit.path}:{hit.symbol} ({hit.kind}, {hit.score:.4f})"
        )
    print(f"\n{len(one.judged.groups) - len(seen)} of {len(one.judged.groups)} are missing:")
    for number, group in enumerate(one.judged.groups):
        if number not in seen:
            place = min(group)
            print(f"   {place.source}:{place.path}:{place.name}")
    print({name: round(value, 3) for name, value in asdict(one.scores).items()})


def print_differences(run: Sequence[Answered], earlier: dict[str, dict[str, float]]) -> None:
    """Print the mean differences to an earlier run with their intervals: all, each set."""
    both = [one for one in run if one.judged.id in earlier]
    print("against the earlier run, with 95 % intervals of the paired differences:\n")
    print_heading()
    for kind in ("all", *FILES):
        pairs = [
            (one.scores, Scores(**earlier[one.judged.id]))
            for one in both
            if kind in ("all", one.judged.file)
        ]
        if pairs:
            cells = " | ".join(difference(pairs, field.name) for field in fields(Scores))
            print(f"| {kind} | {len(pairs)} | {cells} |")


def difference(pairs: Sequence[tuple[Scores, Scores]], name: str) -> str:
    """Return the mean difference of one figure with its interval."""
    differences = [getattr(now, name) - getattr(then, name) for now, then in pairs]
    low, high = bootstrap_interval(differences)
    return f"{statistics.fmean(differences):+.3f} ({low:+.3f} to {high:+.3f})"


def print_cost(run: Sequence[Answered], first_s: float, settings: Settings) -> None:
    """Print times and the size of the index."""
    times = [one.elapsed_ms for one in run]
    p95 = statistics.quantiles(times, n=20)[-1]
    size_mb = library_index_path(settings).stat().st_size / 1e6
    print(
        f"\nquery p50 {statistics.median(times):.0f} ms, p95 {p95:.0f} ms;"
        f" first search of a process {first_s:.2f} s; index {size_mb:.0f} MB\n"
    )


def print_table(run: Sequence[Answered]) -> None:
    """Print the means as one Markdown table: all, each set, each half, each style."""
    print_heading()
    for kind in ("all", *FILES, *PARTS, *HALVES, *STYLES):
        if some := of_kind(run, kind):
            means = asdict(mean_scores(some)).values()
            print(f"| {kind} | {len(some)} | {' | '.join(f'{mean:.3f}' for mean in means)} |")


def print_intervals(run: Sequence[Answered]) -> None:
    """Print the 95 % intervals of the means, questions resampled: all, each set, each half."""
    print("\n95 % intervals of these means, by resampling the questions:\n")
    print_heading()
    for kind in ("all", *FILES, *HALVES):
        if some := of_kind(run, kind):
            intervals = [
                bootstrap_interval([getattr(one, field.name) for one in some])
                for field in fields(Scores)
            ]
            cells = " | ".join(f"{low:.2f} to {high:.2f}" for low, high in intervals)
            print(f"| {kind} | {len(some)} | {cells} |")


def print_history(path: Path) -> None:
    """Print the measurements that a file holds as Markdown: headings, paragraphs and tables."""
    for part in yaml.safe_load(path.read_text("utf-8")):
        print(f"\n## {part['heading']}\n")
        for item in part["items"]:
            if "text" in item:
                print(f"{item['text']}\n")
            else:
                print_table_head(item["columns"])
                print("".join(f"| {' | '.join(row)} |\n" for row in item["rows"]))


def print_heading() -> None:
    """Print the head of a table of figures."""
    print_table_head(["", "questions", *COLUMNS])


def print_table_head(columns: Sequence[str]) -> None:
    """Print the first two lines of a table."""
    print(f"| {' | '.join(columns)} |")
    print("|---" * len(columns) + "|")


def of_kind(run: Sequence[Answered], kind: str) -> list[Scores]:
    """Return the scores of the questions that count in a row."""
    return [one.scores for one in run if kind in ("all", *marks(one.judged))]


def marks(judged: JudgedQuery) -> tuple[str, ...]:
    """Return the rows of a table, beside the first, that a question counts in."""
    return judged.file, judged.half, judged.style, f"{judged.file}, {judged.half}"


if __name__ == "__main__":
    main()
