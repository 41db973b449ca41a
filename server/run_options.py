"""What `kopt run` was asked for on its command line."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kopt.config.search_settings import SearchSettings, Strategy, load_search_settings
from kopt.search.models.model_source import ModelSource
from kopt.search.records.budget import Budget, parse_budget

from .session import Session

_OF_NEW_RUNS = (
    "kernel",
    "arch",
    "rounds",
    "beam_width",
    "strategy",
    "seed",
    "config",
    "start",
)


@dataclass(frozen=True)
class RunOptions:
    """What the command line asked for; None where it said nothing."""

    kernel: str | None
    device: str
    arch: str | None
    rounds: int | None
    beam_width: int | None
    strategy: Strategy | None
    seed: int | None
    budget: str | None
    config: Path | None
    start: Path | None
    resume: str | None
    record: Path | None
    replay: Path | None
    every: bool
    no_models: bool
    yes: bool
    dry_run: bool
    progress: bool
    suite: Path | None = None
    share: float = 1.0
    """The part of the budget that one run of a suite has."""

    @property
    def for_new_runs(self) -> tuple[str, ...]:
        """Names of what was given of all that only a new run can be told."""
        return tuple(name for name in _OF_NEW_RUNS if getattr(self, name) is not None)

    @property
    def parsed_budget(self) -> Budget | None:
        """The budget that was given.

        Raises:
            ToolError: It is no budget.
        """
        return None if self.budget is None else parse_budget(self.budget)

    @property
    def search(self) -> SearchSettings:
        """The settings of a new search.

        Raises:
            ToolError: The file cannot be read, or a value is out of range.
        """
        found = load_search_settings(self.config).with_beam(self.beam_width, self.rounds)
        return found.model_copy(update={"strategy": self.strategy or found.strategy})

    def is_quiet(self, session: Session) -> bool:
        """Return whether nothing but one JSON document is to be shown."""
        return session.as_json and not self.progress

    @cached_property
    def models(self) -> ModelSource:
        """Who answers the agents."""
        return ModelSource(record=self.record, replay=self.replay)
