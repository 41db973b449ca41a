"""The plan of a study: arms, kernels, repeats, and the order of its runs.

The plan is written once and never changed. Together with the runs, which are runs like any other,
it is all that a study is: whatever was killed is taken up from these two. The arms are the whole
search, the ablations of the KernelBlaster paper (docs/study.md), and settings of one's own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import Field, ValidationError, field_validator

from kopt.config.errors import ToolError
from kopt.config.search_settings import SearchSettings, complete_settings, load_search_settings
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.record import Record
from kopt.search.records.budget import Budget

STUDY_PREFIX = "study-"


class Cell(Record):
    """One run of a study."""

    kernel: str
    arm: str
    repeat: int
    """From 0."""
    place: int
    """How many kernels the base of this arm and repeat has seen before, from 0."""
    run: str
    """Id of the run."""


class Arm(Record):
    """One way to search."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,19}$")
    search: SearchSettings

    @field_validator("search", mode="before")
    @classmethod
    def _of_an_older_study(cls, kept: Any) -> Any:
        """Take settings that were written before `search` held them all."""
        return complete_settings(cast(dict[str, Any], kept)) if isinstance(kept, dict) else kept


class StudyPlan(Record):
    """The plan of a study, fixed at its start."""

    schema_: Literal["kopt.study-plan/1"] = Field(default="kopt.study-plan/1", alias="schema")
    id: str
    arms: tuple[Arm, ...] = Field(min_length=1)
    """The first is the one that the others are compared with."""
    kernels: tuple[str, ...] = Field(min_length=1)
    repeats: int = Field(ge=1, le=100)
    target: float = Field(gt=0.0)
    """A speed: over the baseline where it is measured, else over the start."""
    is_share: bool = False
    """Whether the target is a share of the speed of the fastest candidate that any run of the study
    has found for the same kernel."""
    budget: Budget
    """Budget of each run."""
    seed: int
    """Runs of repeat r have the seed r above it, in every arm."""
    device: str
    """sim, or cuda:N as it was counted when the study began."""
    gpu: DeviceFacts | None
    """The GPU; None on sim, where times are estimates."""
    arch: str
    asks_models: bool = True
    """Whether agents think of candidates; else kopt writes them."""
    has_base: bool
    """Whether every base begins as the file that was given, not as the packaged seed alone."""
    based: tuple[str, ...] = ()
    """Arms whose bases begin as files of their own."""
    kopt_version: str
    created_us: int
    """Unix microseconds."""

    @property
    def reference(self) -> Arm:
        """The arm that the others are compared with."""
        return self.arms[0]

    @property
    def target_words(self) -> str:
        """The target, as 1.3x or 95% of the best."""
        return f"{100 * self.target:.3g}% of the best" if self.is_share else f"{self.target:g}x"

    def arm(self, name: str) -> Arm:
        """Return an arm by its name."""
        return next(arm for arm in self.arms if arm.name == name)

    def cells(self) -> Iterator[Cell]:
        """Yield every run in the order in which they are made.

        Arms take turns on one kernel, and each goes first as often as the others, so that what
        drifts over the hours meets all alike. The first kernel changes with the repeat: where a
        base is carried from kernel to kernel none is always the one that finds it empty.
        """
        for repeat in range(self.repeats):
            for place in range(len(self.kernels)):
                turn = (repeat + place) % len(self.arms)
                for arm in (*self.arms[turn:], *self.arms[:turn]):
                    yield self._cell(arm.name, repeat, place)

    def _cell(self, arm: str, repeat: int, place: int) -> Cell:
        return Cell(
            kernel=self.kernels[(repeat + place) % len(self.kernels)],
            arm=arm,
            repeat=repeat,
            place=place,
            run=f"run-{self.id.removeprefix(STUDY_PREFIX)}-{arm}-r{repeat}-k{place}",
        )


ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "full": {},
    "memory_off": {"memory": "off"},
    "cycles_only": {"profile": "cycles_only"},
    "minimal": {"agent": "minimal", "memory": "off"},
}
"""Changes of the common settings, by arm."""
WITHOUT_MODELS = ("full", "memory_off")
"""The ablations that differ where no model is asked."""


def make_arms(words: Sequence[str], common: SearchSettings) -> tuple[Arm, ...]:
    """Return the arms that `words` name, each `full` or another ablation, or `NAME=FILE.yaml`.

    Raises:
        ToolError: A name is unknown or there twice, or a file is none of search settings.
    """
    arms = tuple(_arm(word, common) for word in words)
    names = [arm.name for arm in arms]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ToolError(f"the arm {twice} is named twice")
    return arms


def with_bases(
    arms: tuple[Arm, ...], names: Iterable[str], common: SearchSettings
) -> tuple[Arm, ...]:
    """Return the arms, and one for each other name of a base: an ablation, or as `full` searches.

    Raises:
        ToolError: A name is none of an arm, or of one without memory.
    """
    known = {arm.name: arm for arm in arms}
    for name in filter(None, names):
        changes = ABLATIONS.get(name, {})
        arm = known.setdefault(name, _named(name, common.model_copy(update=changes)))
        if arm.search.memory == "off":
            raise ToolError(f"the arm {name} has no memory: it begins as no base")
    return tuple(known.values())


def _arm(word: str, common: SearchSettings) -> Arm:
    name, equals, file = word.partition("=")
    if equals:
        search = load_search_settings(Path(file), common)
    elif name in ABLATIONS:
        search = common.model_copy(update=ABLATIONS[name])
    else:
        raise ToolError(f"arm {name!r} is unknown: {', '.join(ABLATIONS)}, or NAME=FILE.yaml")
    return _named(name, search)


def _named(name: str, search: SearchSettings) -> Arm:
    try:
        return Arm(name=name, search=search)
    except ValidationError as error:
        raise ToolError(f"arm {name!r}: up to 20 of a-z, 0-9 and _, a letter first") from error
