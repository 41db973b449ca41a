"""What `kopt run` was asked for on its command line."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from kopt.config.providers import Provider
from kopt.config.search_settings import SearchSettings, Strategy, load_search_settings
from kopt.search.models.model_source import ModelSource
from kopt.search.records.budget import Budget, parse_budget
from kopt.search.records.run_state import RunSettings

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
    provider: Provider | None = None
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
        found = found.by(self.provider or found.models.provider)
        return found.model_copy(update={"strategy": self.strategy or found.strategy})

    def is_quiet(self, session: Session) -> bool:
        """Return whether nothing but one JSON document is to be shown."""
        return session.as_json and not self.progress

    @cached_property
    def models(self) -> ModelSource:
        """Who answers the agents; of a run that goes on, its own provider has to be given.

        Raises:
            ToolError: The file of settings cannot be read, or a value is out of range.
        """
        if self.no_models:
            return ModelSource()
        return ModelSource(self.search.models.provider, record=self.record, replay=self.replay)

    def of_run(self, run: RunSettings) -> Self:
        """Return these options for a run that goes on: its provider, unless another is given."""
        return replace(self, provider=self.provider or run.search.models.provider)
