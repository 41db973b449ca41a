"""What limits a candidate of a run: its profile, kept in the run once it was made, and notes on it.

A profile that cannot be made costs the step nothing else: the reason takes its place.
"""

from dataclasses import dataclass

from kopt.config.errors import InfraError, SetupError
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.profile_result import ProfileResult
from kopt.search.advice.fitting_note import FittingNote
from kopt.search.advice.notes import NoteFinder
from kopt.search.advice.retrieval import Asker
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.records.members import Member
from kopt.search.records.run_state import RunState
from kopt.search.store.store import RunStore
from kopt.tools.devices.gpu_time import metered_gpu_time
from kopt.tools.profiling.stage import ProfileDevices, ProfileRequest, profile_candidate
from kopt.tools.sim.device import SimDevice

_KIND = "profile"


@dataclass(frozen=True)
class LeaderProfile:
    """The leader and what is known of its limits."""

    profile: ProfileResult | None
    dtypes: frozenset[str]
    """The dtypes of the kernel's tensors."""
    problem: str | None = None
    """Why there is no profile."""
    noted: tuple[FittingNote, ...] = ()
    """The notes of kopt's documents that fit it."""


@dataclass(frozen=True)
class Profiler:
    """Profiles candidates of one run; the store is locked and used by one thread."""

    store: RunStore
    site: EvaluationSite
    """The GPU measures, the simulator counts."""
    counters: bool = True
    """Whether the GPU's counters are read too."""

    def profile(self, member: Member) -> ProfileResult | None:
        """Return the profile of a candidate that has passed; None where none can be made."""
        try:
            return self.required(member)
        except (SetupError, InfraError):
            return None

    def required(self, member: Member) -> ProfileResult:
        """Return the profile of a candidate that has passed: the kept one, or a new one.

        Raises:
            SetupError: This machine cannot make one.
            InfraError: The machine failed under it.
        """
        reader = self.store.reader
        sha = None if member.quick is None else member.quick.artifacts.get(_KIND)
        state, kept = reader.state(), reader.readable(sha, ProfileResult)
        if kept is not None:
            return kept
        leads = ", which leads" if member.seq in state.beam[:1] else ""
        self.site.say(f"profiling #{member.seq}{leads}")
        with metered_gpu_time() as held:
            profile = _make(state, member, self.site, self.counters)
        if held.seconds and not state.is_finished:
            self.store.add_tool_time(held.seconds)
        if not state.is_finished:  # a finished run is never touched again
            data = profile.model_dump_json(by_alias=True).encode()
            self.store.add_document(member.seq, _KIND, data)
        return profile


def profile_leader(profiler: Profiler) -> LeaderProfile | None:
    """Return the profile of the run's winner, or of its leader; None while nothing has passed."""
    state = profiler.store.reader.state()
    leaders = state.beam if state.winner is None else (state.winner,)
    if not leaders:
        return None
    settings = profiler.site.settings
    problem, _ = find_kernel(state.settings.kernel, settings.problems)
    dtypes = frozenset(tensor.dtype for tensor in problem.tensors)
    leader = profiler.store.reader.members()[leaders[0]]
    try:
        profile = profiler.required(leader)
    except (SetupError, InfraError) as error:
        return LeaderProfile(None, dtypes, str(error))
    desk = NoteFinder(
        settings, Asker(profiler.store.folder.name, "kopt step, suggestions"), problem
    )
    return LeaderProfile(profile, dtypes, noted=desk.notes_on(leader, profile))


def _make(state: RunState, member: Member, site: EvaluationSite, counters: bool) -> ProfileResult:
    problem, workload = find_kernel(state.settings.kernel, site.settings.problems)
    request = ProfileRequest(
        case=Case(problem, workload, Candidate(member.source, member.source_name), member.tune),
        arch=state.settings.arch,
        counters=counters,
    )
    counting = site.device if site.timer is None else SimDevice(site.settings)
    return profile_candidate(request, site.settings, ProfileDevices(counting, site.timer))
