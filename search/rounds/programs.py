"""The performance state of a run's programs: by rule from a profile, by a model where rules tie."""

from dataclasses import dataclass

from kopt.kernels.profile_result import ProfileResult
from kopt.search.agents.views import StateQuestion, TechniqueQuestion
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.edits import Edit
from kopt.search.knowledge.projection import extend
from kopt.search.knowledge.records import ProfileSignature
from kopt.search.knowledge.states.matching import Match, match_state
from kopt.search.knowledge.states.signature import extract_signature, signature_of_time
from kopt.search.models.errors import BudgetSpent
from kopt.search.records.members import Member
from kopt.search.selection.ranking import rank, speed_of
from kopt.search.store.taught import StatedProgram

from .agents import Roles
from .memory import STATE
from .run_context import RunContext


def state_of(context: RunContext, member: Member) -> StatedProgram:
    """Return the performance state of a candidate, found once and then kept with it.

    That of one that has not passed, or has no profile, is the one of which only a time is known.

    Raises:
        CallFailed: A model was to decide, and none can be asked now.
    """
    known = context.memory.programs().get(member.seq)
    if known is not None:
        return known
    profile = context.search.profile(member) if member.passed else None
    signature = signature_of_time() if profile is None else extract_signature(profile)
    found = _Finding(context, member, signature, profile).program()
    if member.passed and not context.state().is_finished:
        document = found.model_dump_json().encode()
        context.search.store.add_document(member.seq, STATE, document)
    return found


def find_states(context: RunContext, number: int) -> None:
    """Find the states that a round teaches about.

    Those of the programs that techniques were applied to, and of the programs that agents made
    faster by them; of a source that was swept, that of its best before. A profile takes as long as
    ten candidates, so that what kopt wrote itself gets one when something is made of it.
    """
    members, least = context.members(), context.state().settings.search.min_effect
    of_round = [one for one in members if one.round == number]
    taught: set[int] = set()
    for member in of_round:
        if member.techniques:
            parents = [members[seq] for seq in member.parents[:1]]
            taught |= {one.seq for one in parents}
            if member.branch is not None:
                taught |= {member.seq for one in parents if _is_faster(member, one, least)}
    for sha in dict.fromkeys(one.source_sha for one in of_round if one.branch is None):
        earlier = (one for one in members if one.source_sha == sha and one.round < number)
        taught |= {one.seq for one in rank(earlier)[:1]}
    for seq in sorted(taught, key=lambda one: members[one].order):
        if members[seq].passed:
            state_of(context, members[seq])


def _is_faster(member: Member, parent: Member, least: float) -> bool:
    speed, before = speed_of(member), speed_of(parent)
    return speed is not None and before is not None and speed.gain_over(before) > least


@dataclass(frozen=True)
class _Finding:
    """One program whose state is to be found."""

    context: RunContext
    member: Member
    signature: ProfileSignature
    profile: ProfileResult | None

    def program(self) -> StatedProgram:
        base = self.context.memory.base()
        match = match_state(self.signature, base.states)
        found = self._decided(match)
        return found.model_copy(update={"proposed": self._proposed(found, base)})

    def _decided(self, match: Match) -> StatedProgram:
        by_rule = StatedProgram(
            state=match.state,
            signature=self.signature,
            confidence=match.confidence,
            is_new=match.is_new,
        )
        roles = self._roles()
        if not match.rivals or roles is None:
            return by_rule
        rivals = (match.state, *match.rivals)
        question = StateQuestion(self._id("state"), self.signature, rivals, self.profile)
        try:
            decision = self.context.in_worker(question.id, lambda: roles.decide_state(question))
        except BudgetSpent as spent:
            return by_rule.model_copy(update={"reason": f"by rule: {spent}"})
        by_id = {state.id: state for state in rivals}
        told = {"decided_by": decision.decided_by, "reason": decision.reason}
        return by_rule.model_copy(update={"state": by_id[decision.state], **told})

    def _proposed(self, found: StatedProgram, base: KnowledgeBase) -> tuple[Edit, ...]:
        """Return what a model would try in a state of which nothing is known."""
        line = base.ancestry(found.state.id) or base.ancestry(found.state.inherits or "")
        roles = self._roles()
        if roles is None or any(base.entries_of(state.id) for state in line):
            return ()
        base = extend(base, [(base.version, edit) for edit in found.edits], base.version)
        name = self._id("propose")
        question = TechniqueQuestion(name, base, found.state, self.signature, self.profile)
        try:
            return self.context.in_worker(name, lambda: roles.propose_techniques(question)).edits
        except BudgetSpent:
            return ()

    def _roles(self) -> Roles | None:
        """Return the roles to ask; None where the rules decide alone."""
        agents, settings = self.context.search.agents, self.context.state().settings.search
        if agents is None or settings.agent == "minimal" or not self.context.memory.is_on:
            return None
        return agents.roles()

    def _id(self, what: str) -> str:
        return f"r{self.context.state().round}/{what}{self.member.label}"
