"""What limits the leader of a run: its profile, kept in the run once it was made.

A profile that cannot be made costs the step nothing else: the reason takes its place.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import ValidationError

from kopt.config.errors import InfraError, SetupError
from kopt.kernels.candidate import Candidate
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.profile_result import ProfileResult
from kopt.search.evaluation.evaluate_job import EvaluationSite
from kopt.search.proposer import Member
from kopt.search.store.run_records import RunState
from kopt.search.store.store import RunStore
from kopt.tools.profile_stage import ProfileDevices, ProfileRequest, profile_candidate
from kopt.tools.sim.device import SimDevice

_KIND = "profile"


@dataclass(frozen=True)
class LeaderProfile:
    """The leader and what is known of its limits."""

    profile: ProfileResult | None
    dtypes: frozenset[str]
    """Of the kernel's tensors."""
    problem: str | None = None
    """Why there is no profile."""


def profile_leader(
    store: RunStore, site: EvaluationSite, counters: bool, say: Callable[[str], None]
) -> LeaderProfile | None:
    """Return the profile of the run's winner, or of its leader; None while nothing has passed.

    Args:
        store: The run, locked.
        site: What profiles it: the GPU measures, the simulator counts.
        counters: Whether the GPU's counters are read too.
        say: Told what goes on.
    """
    state = store.reader.state()
    leaders = state.beam if state.winner is None else (state.winner,)
    if not leaders:
        return None
    member = store.reader.members()[leaders[0]]
    kernel = find_kernel(state.settings.kernel, site.settings.problems)
    dtypes = frozenset(tensor.dtype for tensor in kernel[0].tensors)
    profile = _kept(store, member)
    if profile is None:
        say(f"profiling #{member.seq}, which leads")
        try:
            profile = _make(state, member, site, counters)
        except (SetupError, InfraError) as error:
            return LeaderProfile(None, dtypes, str(error))
        if not state.is_finished:  # a finished run is never touched again
            data = profile.model_dump_json(by_alias=True).encode()
            store.add_document(member.seq, _KIND, data)
    return LeaderProfile(profile, dtypes)


def _kept(store: RunStore, member: Member) -> ProfileResult | None:
    """Return the profile that was made before; None where this kopt cannot read it."""
    try:
        data = store.reader.document(member, _KIND)
        return None if data is None else ProfileResult.model_validate_json(data)
    except (InfraError, ValidationError):
        return None


def _make(state: RunState, member: Member, site: EvaluationSite, counters: bool) -> ProfileResult:
    problem, workload = find_kernel(state.settings.kernel, site.settings.problems)
    request = ProfileRequest(
        problem=problem,
        workload=workload,
        candidate=Candidate(member.source, member.source_name),
        arch=state.settings.arch,
        tune=member.tune,
        counters=counters,
    )
    counting = site.device if site.timer is None else SimDevice(site.settings)
    return profile_candidate(request, site.settings, ProfileDevices(counting, site.timer))
