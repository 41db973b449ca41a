"""Documents for the agents: what is quoted at the start of a run and before each plan.

Every search is logged with the run, and what cannot be searched is said instead of raised: a run
goes on without documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kopt.config.errors import KoptError
from kopt.config.settings import Settings
from kopt.kernels.families import FAMILY_CHANGES
from kopt.kernels.problem import Problem
from kopt.kernels.profile_result import ProfileResult
from kopt.search.advice.fitting_note import FittingNote
from kopt.search.advice.notes import NoteFinder
from kopt.search.advice.retrieval import Asker, search_for_run
from kopt.search.records.members import Member
from kopt.tools.docs.records import SearchRequest, SearchResult
from kopt.tools.facts.docs_facts import hit_facts
from kopt.tools.facts.fitting import Facts, cleaned, given
from kopt.tools.facts.rendering import render

from .prompt import without_folders

RUN_TOKENS = 8_000
"""Tokens of the documents in every system prompt: paid once, then read from the cache."""
ROUND_TOKENS = 2_000
"""Tokens of the documents before a plan, which are paid each time."""
_FAMILIES_SOUGHT = 3
_ASKED_BY = "kopt run, agents"
_WITHOUT = ("docs",)
"""kopt's manual: what an author needs of it stands in the prompt."""


@dataclass(frozen=True)
class DocumentSearch:
    """Searches documents for one run, whose log names every search."""

    settings: Settings
    run: str
    """Id of the run that the log is kept with."""

    def search(self, request: SearchRequest) -> SearchResult:
        """Return what is found; raises what `search_for_run` does."""
        return search_for_run(request, Asker(self.run, _ASKED_BY), self.settings)

    def documents(self, problem: Problem, arch: str) -> str:
        """Return how production code does what `problem` asks for."""
        words = " ".join(dict.fromkeys((problem.op_type, *problem.name.split("_"))))
        dtypes = sorted({tensor.dtype for tensor in problem.tensors})
        half = RUN_TOKENS // 2
        return self._quoted(
            SearchRequest(
                query=f"{words} kernel",
                k=3,
                kind="kernel",
                arch=arch,
                without=_WITHOUT,
                max_tokens=half,
            ),
            SearchRequest(
                query=f"{' '.join(dtypes)} vectorized load store convert reduce",
                k=6,
                arch=arch,
                without=_WITHOUT,
                max_tokens=half,
            ),
            # The run begins with it, or with something better.
            without=f"/{problem.name}/reference.cu",
        )

    def round_documents(self, profile: ProfileResult | None, arch: str) -> str:
        """Return how others lift what holds the leader back; empty without a profile."""
        bottleneck = None if profile is None else profile.bottleneck
        if bottleneck is None:
            return ""
        changes = [FAMILY_CHANGES[one] for one in bottleneck.families[:_FAMILIES_SOUGHT]]
        query = " ".join((bottleneck.name.replace("_", " "), *changes))[:1_000]
        return self._quoted(
            SearchRequest(query=query, k=3, arch=arch, without=_WITHOUT, max_tokens=ROUND_TOKENS)
        )

    def notes_on(
        self, member: Member, profile: ProfileResult | None, problem: Problem
    ) -> tuple[FittingNote, ...]:
        """Return the notes that fit the code of a candidate; () without its profile."""
        desk = NoteFinder(self.settings, Asker(self.run, _ASKED_BY), problem)
        return desk.notes_on(member, profile)

    def _quoted(self, *requests: SearchRequest, without: str | None = None) -> str:
        seen: set[str] = set()
        parts: list[str] = []
        for request in requests:
            try:
                result = self.search(request)
            except KoptError as error:
                return f"no documents: {without_folders(str(error))}"
            fresh = [
                hit
                for hit in result.hits
                if hit.uid not in seen and (without is None or without not in hit.path)
            ]
            seen.update(hit.uid for hit in fresh)
            parts += [render(cleaned(hit_facts(hit))) for hit in fresh]
        return "\n\n".join(parts) or "no document fits"


def found_facts(result: SearchResult) -> Facts:
    """Return the answer to a search as a model reads it."""
    return given(
        hits=[hit_facts(hit) for hit in result.hits],
        further=[one.title for one in result.further],
        unknown_words=_unknown(result),
        advice=result.advice,
        degraded=result.degraded,
        notice=result.notice,
    ) or {"hits": []}


def _unknown(result: SearchResult) -> Sequence[str]:
    return [f"{one.word}: {', '.join(one.nearest) or '?'}" for one in result.unknown_words]
