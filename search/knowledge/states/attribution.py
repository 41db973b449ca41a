"""Credit assignment: a sample for each application of a technique in a run's candidates.

Pure: the same candidates give the same samples, in whatever order their branches ended.
`trials.py` has the rules.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kopt.kernels.status import Provenance, Status
from kopt.search.knowledge.records import ProfileSignature, Sample
from kopt.search.records.members import Member
from kopt.search.records.run_state import BranchRow

from .applications import History, are_equal, is_measured
from .matching import UNKNOWN_STATE
from .trials import Ablation, Trial, find_trials, wanted_variants


@dataclass(frozen=True)
class Placed:
    """The state and signature of a program that was profiled."""

    state: str
    """Id of its state."""
    signature: ProfileSignature


@dataclass(frozen=True)
class Teaching:
    """The run, and what is known beside its candidates."""

    run: str
    """Prefix of the ids of its samples, which have these fields, too."""
    kernel: str
    op_type: str
    arch: str
    device: str
    toolkit: str
    day: str
    """The date on which the run began."""
    min_effect: float
    """Fraction of the speed below which a change is none."""
    catalogue: frozenset[str] = frozenset()
    """Techniques that the run's base knows: only their switches are switches."""
    placed: Mapping[int, Placed] = field(default_factory=dict[int, Placed])
    """By `seq` of the candidates that were profiled."""
    is_final: bool = False
    """Whether the run's last round has ended: what could still be split is taught as it is."""


def make_samples(
    members: Sequence[Member], branches: Sequence[BranchRow], context: Teaching
) -> tuple[Sample, ...]:
    """Return all that the candidates of a run have taught so far.

    Called after every round with everything, it gives what it gave before and what is new, except
    for what a later check refuted (`revoked_samples`). A candidate of an open branch has taught
    nothing yet.
    """
    history = History(members, branches, context.min_effect, context.catalogue)
    trials = find_trials(history, context.is_final)
    return tuple(_sample(trial, history, context) for trial in trials)


def ablations_wanted(
    members: Sequence[Member], branches: Sequence[BranchRow], context: Teaching
) -> tuple[Ablation, ...]:
    """Return the variants whose evaluation would split a composite; no model is asked for them.

    A composite whose effect is within noise is not worth any.
    """
    history = History(members, branches, context.min_effect, context.catalogue)
    return tuple(
        variant
        for application in history.applications
        for variant in wanted_variants(application, history)
    )


def revoked_samples(taught: Iterable[str], samples: Iterable[Sample]) -> tuple[str, ...]:
    """Return the ids of a run that were taught and that `samples`, made now, has no more.

    A later check refuted a program in them, or they were split since.
    """
    current = {sample.id for sample in samples}
    return tuple(name for name in taught if name not in current)


def _sample(trial: Trial, history: History, context: Teaching) -> Sample:
    step, found, hypothesis = trial.step, trial.found, trial.step.hypothesis
    before = _placed(step.before, history, context)
    after = _placed(step.after, history, context)
    start = before or _placed(trial.start, history, context)
    state = start.state if start is not None else hypothesis.get("state")
    # Of a failure: what its speeds would have been.
    on_gpu = context.device != "sim" if found is None else is_measured(step.after)
    is_predicted = tuple(hypothesis.get("techniques", ())) == step.techniques
    return Sample(
        id=f"{context.run}/{trial.name}",
        run=context.run,
        kernel=context.kernel,
        op_type=context.op_type,
        arch=context.arch,
        device=context.device,
        toolkit=context.toolkit,
        state=state or UNKNOWN_STATE,
        techniques=step.techniques,
        previous=step.previous,
        signature_before=None if before is None else before.signature,
        signature_after=None if after is None else after.signature,
        before=step.before.source_sha,
        after=step.after.source_sha,
        predicted=hypothesis.get("predicted_gain") if is_predicted else None,
        predicted_interval=hypothesis.get("predicted_interval") if is_predicted else None,
        measured=None if found is None else found.measured,
        interval=None if found is None else found.interval,
        provenance=Provenance.MEASURED if on_gpu else Provenance.ESTIMATED,
        outcome="failed" if found is None else found.outcome,
        status=_status(step.after),
        day=context.day,
    )


def _placed(member: Member, history: History, context: Teaching) -> Placed | None:
    """Return where a program stands: it, or an equal one, was profiled."""
    same = (seq for seq in sorted(context.placed) if are_equal(history.by_seq[seq], member))
    seq = member.seq if member.seq in context.placed else next(same, None)
    return None if seq is None else context.placed[seq]


def _status(member: Member) -> Status:
    """Return how the evaluation ended that decided on a candidate which was evaluated."""
    checks = [one for one in (member.quick, member.tie, member.proof) if one is not None]
    failed = (one.status for one in checks if one.status is not Status.PASSED)
    return next(failed, Status.PASSED)
