"""The profile stage over several choices of tune values, each reduced to one row.

It orders them by estimated time, on a GPU by measured time. It checks no values, and calls nothing
faster or slower: `kopt run` sweeps choices against a baseline.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from kopt.config.callbacks import ignore
from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.case import Case
from kopt.kernels.expressions import evaluate_predicate
from kopt.kernels.profile_result import ChoiceProfile, LaunchProfile, ProfileChoices, ProfileResult
from kopt.kernels.status import Status

from .stage import ProfileDevices, ProfileRequest, profile_candidate

MOST_CHOICES = 100
"""Most choices that are profiled: more take minutes, and a longer table is not read."""


def profile_choices(
    request: ProfileRequest, settings: Settings, devices: ProfileDevices
) -> ProfileChoices:
    """Return a row for every tune choice of the candidate, the fastest first.

    The request's `tune` holds fast the values that it names; counters are not read. A choice that
    is timed is ordered by that.

    Raises:
        ToolError: The header has mistakes or no tune values, or there are too many choices.
        SetupError: No compiler, no sandbox, or a folder that cannot be written.
        InfraError: The machine failed under the work; it may be tried again.
    """
    chosen = asked_choices(request.case)
    profiles: list[ProfileResult] = []
    rows: list[ChoiceProfile] = []
    for place, choice in enumerate(chosen.choices):
        words = " ".join(f"{name}={value}" for name, value in choice.items())
        request.progress(f"{place + 1} of {len(chosen.choices)}: {words}")
        one = replace(
            request,
            case=request.case.with_tune(choice),
            counters=False,
            suspects=False,
            progress=ignore,
        )
        profiles.append(profile_candidate(one, settings, devices))
        rows.append(choice_row(choice, profiles[-1], is_default=choice == chosen.default))
    passed = any(row.status is Status.PASSED for row in rows)
    first = profiles[0]
    return ProfileChoices(
        status=Status.PASSED if passed else rows[0].status,
        kernel=first.kernel,
        candidate=first.candidate,
        arch=first.arch,
        gpu=first.gpu,
        device=devices.timing.name if devices.timing else None,
        set_by_variant=chosen.set_by_variant,
        choices=tuple(sorted(rows, key=lambda row: row.order_us)),
    )


@dataclass(frozen=True)
class AskedChoices:
    """The choices of tune values that a table has a row for."""

    choices: tuple[dict[str, int], ...]
    """Every declared name in each, with the value that the workload's variant sets."""
    default: dict[str, int]
    set_by_variant: tuple[str, ...]
    """Names that no choice changes."""


def asked_choices(case: Case) -> AskedChoices:
    """Return every choice of a candidate that has the case's tune values.

    Raises:
        ToolError: The header has mistakes or no tune values, or there are too many choices.
    """
    if case.header is None:
        raise ToolError(f"{case.candidate.name} has a header with mistakes: compile says which")
    forced = set_by_variant(case)
    every = _distinct({**choice, **forced} for choice in case.choices)
    chosen = [choice for choice in every if case.tune.items() <= choice.items()]
    _refuse_numbers(case.candidate.name, chosen)
    return AskedChoices(tuple(chosen), every[0], tuple(forced))


def set_by_variant(case: Case) -> Mapping[str, int]:
    """Return the tune values that hold for the case's workload whatever the choice."""
    if case.header is None:
        return {}
    axes = case.workload.axes
    return next(v.set for v in case.header.variants if evaluate_predicate(v.when, axes))


def _distinct(choices: Iterable[dict[str, int]]) -> list[dict[str, int]]:
    return list({tuple(choice.items()): choice for choice in choices}.values())


def _refuse_numbers(name: str, chosen: Sequence[Mapping[str, int]]) -> None:
    """Refuse no choice at all, and more than MOST_CHOICES."""
    if not chosen or not chosen[0]:
        raise ToolError(
            f"{name} has no tune values to choose from, or none that go together with each other"
            " and with what the workload's variant sets"
        )
    if len(chosen) > MOST_CHOICES:
        raise ToolError(
            f"{name} has {len(chosen)} choices, at most {MOST_CHOICES} are profiled: hold some"
            " names fast, e.g. all,BLOCK=256"
        )


def choice_row(
    choice: dict[str, int], profile: ProfileResult, *, is_default: bool
) -> ChoiceProfile:
    """Return a profile reduced to one row of a table."""
    estimate, measured = profile.estimate, profile.measured
    row = ChoiceProfile(
        tune=choice,
        is_default=is_default,
        status=profile.status,
        why="" if profile.status is Status.PASSED else _why(profile),
        estimated_us=None if estimate is None else estimate.latency_us,
        resolution=None if estimate is None else estimate.resolution,
        measured_us=None if measured is None else measured.latency.median_us,
        mostly=None if estimate is None else estimate.dominant,
    )
    if not profile.launches:
        return row
    return row.model_copy(update=_static(max(profile.launches, key=_threads)))


def _why(profile: ProfileResult) -> str:
    return next((one.message for one in profile.diagnostics if one.severity == "error"), "")


def _static(launch: LaunchProfile) -> dict[str, object]:
    resources, occupancy = launch.resources, launch.occupancy
    return {
        "blocks": occupancy.grid_blocks,
        "threads_per_block": prod(launch.block),
        "waves": occupancy.waves,
        "registers_per_thread": resources.registers_per_thread,
        "spill_bytes": resources.spill_store_bytes + resources.spill_load_bytes,
        "theoretical_occupancy": occupancy.theoretical_occupancy,
        "instructions": resources.instructions,
    }


def _threads(launch: LaunchProfile) -> int:
    return prod(launch.grid) * prod(launch.block)
