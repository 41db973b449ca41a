"""How the search behaves: `search.yaml` beside this file, which explains every key, as a record."""

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from math import ceil
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from kopt.config.providers import Provider, asked_name

from .errors import ToolError
from .key_mistakes import mistake_in_words

Role = Literal["planner", "coder", "fixer", "reflector", "combiner", "learner", "verifier"]
ROLES: tuple[Role, ...] = (
    "planner",
    "coder",
    "fixer",
    "reflector",
    "combiner",
    "learner",
    "verifier",
)
Effort = Literal["low", "medium", "high", "xhigh", "max"]
DiversityMode = Literal["family_diverse", "fastest"]
Strategy = Literal["beam", "maic_rl"]
Detail = Literal["detailed", "cycles_only"]
AgentMode = Literal["full", "minimal"]


def _switch(value: object) -> object:
    """Return what YAML reads as a boolean as the word that stood there."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


Switch = Annotated[Literal["on", "off"], BeforeValidator(_switch)]

MAX_CROSSES = 2
"""Merged candidates of one round, at most."""

_MAX_FILE_BYTES = 64 * 1024


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


_S = TypeVar("_S", bound=_Section)


class BeamSettings(_Section):
    """The size of the search."""

    width: int = Field(gt=0, le=64)
    refine_rounds: int = Field(ge=0, le=1000)


class MaicRlSettings(_Section):
    """The size of a search by trajectories."""

    trajectories: int = Field(gt=0, le=256)
    steps: int = Field(gt=0, le=64)
    most_steps: int = Field(gt=0, le=64)
    actions: int = Field(gt=0, le=16)
    at_once: int = Field(gt=0, le=64)
    update_every: int = Field(gt=0, le=256)

    @model_validator(mode="after")
    def _most_is_most(self) -> Self:
        if self.most_steps < self.steps:
            raise ValueError(f"most_steps, {self.most_steps}, is less than steps, {self.steps}")
        return self


class RoleSettings(_Section):
    """Who is asked in one role, and how much it may say."""

    model: str = Field(min_length=1)
    effort: Effort
    max_output_tokens: int = Field(ge=1024, le=128_000)
    tool_calls: int = Field(ge=0, le=100)


class WithoutTools(RoleSettings):
    """A role that is given no tools."""

    tool_calls: int = Field(ge=0, le=0)


class RolesSettings(_Section):
    """Every role of the search."""

    planner: WithoutTools
    coder: RoleSettings
    fixer: RoleSettings
    reflector: WithoutTools
    combiner: RoleSettings
    learner: WithoutTools
    verifier: WithoutTools

    def of(self, role: Role) -> RoleSettings:
        """Return the settings of one role."""
        return cast(RoleSettings, getattr(self, role))


class ModelsSettings(_Section):
    """Who answers the agents."""

    provider: Provider


class SearchSettings(_Section):
    """The whole of `search.yaml`, where every key is explained."""

    strategy: Strategy
    memory: Switch
    profile: Detail
    agent: AgentMode
    written_starts: int = Field(ge=0, le=3)
    maic_rl: MaicRlSettings
    beam: BeamSettings
    tree_speedup_threshold: float = Field(gt=0.0)
    tree_branching_factor: int = Field(ge=0, le=16)
    diversity_mode: DiversityMode
    early_stop_min_improvement: float = Field(ge=0.0)
    population_crossover: bool
    combine_top_k: int = Field(ge=0, le=8)
    merge_accept: float = Field(ge=0.0, le=1.0)
    fix_attempts: int = Field(ge=0, le=16)
    retire_after: int = Field(gt=0)
    retire_trail: float = Field(ge=0.0, le=1.0)
    min_effect: float = Field(ge=0.0, lt=1.0)
    reserve_factor: int = Field(ge=1, le=8)
    roofline_stop: float = Field(gt=0.0, le=1.0)
    headroom_stop: Switch
    tie_pairs: int = Field(ge=100, le=1600)
    budget_usd: float | None = Field(gt=0.0)
    concurrency: int = Field(gt=0, le=256)
    requests_per_minute: int | None = Field(gt=0)
    input_tokens_per_minute: int | None = Field(gt=0)
    models: ModelsSettings
    roles: RolesSettings

    def asked(self, role: Role) -> RoleSettings:
        """Return the settings of one role, with its model by the name that the provider's has."""
        own = self.roles.of(role)
        return own.model_copy(update={"model": asked_name(self.models.provider, own.model)})

    def by(self, provider: Provider) -> Self:
        """Return these settings with another provider of models."""
        return self.model_copy(update={"models": ModelsSettings(provider=provider)})

    @property
    def sweep_size(self) -> int:
        """Most candidates of a round of the sweep, or of a caller's: nobody merges there."""
        return self.beam.width * (1 + self.tree_branching_factor)

    @property
    def round_size(self) -> int:
        """Most branches of a round of agents: refinement, children and merges, or next steps."""
        if self.strategy == "maic_rl":
            return min(self.maic_rl.at_once, self.maic_rl.trajectories) * self.maic_rl.actions
        return self.sweep_size + (MAX_CROSSES if self.population_crossover else 0)

    @property
    def family_share(self) -> int:
        """Most places of one family in a diverse beam, where there are others."""
        return ceil(self.beam.width / 2)

    def with_beam(self, width: int | None, refine_rounds: int | None) -> Self:
        """Return these settings with another beam; None leaves its part as it is.

        Raises:
            ToolError: A number is out of range.
        """
        wanted = {"width": width, "refine_rounds": refine_rounds}
        changes = {name: value for name, value in wanted.items() if value is not None}
        beam = _validated(BeamSettings, self.beam.model_dump() | changes, "beam.")
        return self.model_copy(update={"beam": beam})


def complete_settings(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tree of a run's kept settings with the values of `search.yaml` for newer keys."""
    return _merged(_default_tree(), kept)


def _merged(known: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tree of `known` keys with the values of `changes`, whatever these are."""
    return dict(known) | {
        key: _merged(known[key], cast(Mapping[str, Any], value))
        if isinstance(value, dict) and isinstance(known.get(key), dict)
        else value
        for key, value in changes.items()
    }


def load_search_settings(
    path: Path | None = None, over: SearchSettings | None = None
) -> SearchSettings:
    """Return the settings in `path` over those of `search.yaml`, or over others; None: these alone.

    Raises:
        ToolError: The file cannot be read, is no YAML, repeats a key or has one that does not
            exist, or a value is out of range; the message names it, and the nearest key.
    """
    if path is None:
        return over or _defaults()
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MAX_FILE_BYTES + 1)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ToolError(f"cannot read the search settings {path}: {why}") from error
    if len(text) > _MAX_FILE_BYTES:
        raise ToolError(f"{path}: more than {_MAX_FILE_BYTES} characters are no search settings")
    changes = _parse(text, str(path))
    tree = _default_tree() if over is None else over.model_dump()
    return _validated(SearchSettings, _merged(tree, changes), f"{path}: ")


@lru_cache
def _defaults() -> SearchSettings:
    return _validated(SearchSettings, _default_tree(), "search.yaml: ")


@lru_cache
def _default_tree() -> dict[str, Any]:
    text = files("kopt.config").joinpath("search.yaml").read_text("utf-8")
    return _parse(text, "search.yaml")


def _parse(text: str, name: str) -> dict[str, Any]:
    import yaml

    from .yaml_mistakes import yaml_message

    try:
        _refuse_repeated_keys(yaml.compose(text, yaml.SafeLoader), name)
        tree: object = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        raise ToolError(yaml_message(error, text, name)) from error
    except (yaml.YAMLError, RecursionError) as error:
        found = " ".join(str(error).split())
        raise ToolError(f"{name} is no YAML: {found}") from error
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ToolError(f"{name}: write keys with values, as in `beam: {{width: 6}}`")
    return cast(dict[str, Any], tree)


def _refuse_repeated_keys(node: Any, name: str) -> None:
    import yaml

    if not isinstance(node, yaml.MappingNode):
        return
    seen: set[str] = set()
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise ToolError(f"{name}, line {line}: a key is a word, not a list or a mapping")
        if key.value in seen:
            raise ToolError(f"{name}, line {line}: {key.value} stands there twice")
        seen.add(key.value)
        _refuse_repeated_keys(value, name)


def _validated(section: type[_S], tree: Mapping[str, Any], where: str) -> _S:
    try:
        return section.model_validate(tree)
    except ValidationError as error:
        raise ToolError(f"{where}{mistake_in_words(error.errors()[0], _default_tree())}") from error
