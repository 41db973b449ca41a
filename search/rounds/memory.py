"""What a run knows of techniques: the knowledge base that it began with, and what it has learned.

Only the run's own file is read while it goes on, so that other runs change nothing in it and a
replay sees the same. What it learns is kept there first and then told to the shared base; telling
twice is as good as once.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING

from kopt.config.callbacks import ignore
from kopt.config.errors import SetupError, ToolError
from kopt.kernels.promotion_result import PromotionResult
from kopt.kernels.status import Provenance
from kopt.search.knowledge.base import KnowledgeBase, dump_base, parse_base
from kopt.search.knowledge.edits import AddNote, Edit, refusal
from kopt.search.knowledge.ledger import LedgerBusy
from kopt.search.knowledge.policy.posterior import Situation, predict
from kopt.search.knowledge.projection import extend
from kopt.search.knowledge.records import WORDS_LIMIT, Sample, arch_key
from kopt.search.knowledge.seed_base import load_seed
from kopt.search.knowledge.states.applicability import KernelTraits
from kopt.search.knowledge.states.attribution import Placed, Teaching, make_samples, revoked_samples
from kopt.search.knowledge.store import KnowledgeStore
from kopt.search.records.members import Member
from kopt.search.records.run_state import RoundRow
from kopt.search.store.run_reader import RunReader
from kopt.search.store.taught import THIS_RUN, StatedProgram, Taught, renamed

from .sweep import ReadChoices

if TYPE_CHECKING:
    from .run_context import RunContext

STATE = "state"
"""Kind of the document with the performance state of a candidate."""


@dataclass(frozen=True)
class MemoryParts:
    """What the machine gives a run to remember with."""

    op_type: str
    """The problem's kind of operation."""
    toolkit: Callable[[], str]
    """CUDA release that compiles the candidates."""
    traits: Callable[[frozenset[str]], KernelTraits]
    """What decides which techniques can apply, given the families that were given up."""
    choices: ReadChoices
    """All allowed tune choices of a source."""
    snapshot: Callable[[], str]
    """The shared base as it is now, as JSON."""
    share: Callable[[], KnowledgeStore] | None
    """Opens the shared base to write what was learned to it; None: it is not written."""
    say: Callable[[str], None] = ignore
    """Is told, in a line, why the shared base cannot be used."""


class RunMemory:
    """The knowledge of a run; used by its main thread. It keeps nothing but caches."""

    def __init__(self, context: "RunContext", parts: MemoryParts | None) -> None:
        """Remember for `context`; `parts` None: nothing is known and nothing is learned."""
        self._context = context
        self._store = context.search.store
        self.parts = parts
        self._first: tuple[str, KnowledgeBase] | None = None
        self._base: tuple[object, KnowledgeBase] | None = None
        self._shared: object = None

    @property
    def is_on(self) -> bool:
        """Whether the run reads and learns."""
        return self.parts is not None and self._context.state().settings.search.memory == "on"

    def begin(self) -> None:
        """Keep the shared base as it is, unless the run has one already."""
        if self.parts is None or not self.is_on:
            return
        state = self._context.state()
        if state.knowledge_sha is None and not state.is_finished:
            self._store.memory.keep_knowledge(self._readable(self.parts))

    def _readable(self, parts: MemoryParts) -> str:
        """Return the shared base; where it cannot be read, that which every base begins with."""
        try:
            return parts.snapshot()
        except SetupError as error:
            parts.say(f"this run begins without what was learned before: {error}")
            return dump_base(load_seed())

    def base(self) -> KnowledgeBase:
        """Return what is known now; without memory the catalogue and no experience."""
        if not self.is_on:
            return replace(load_seed(), entries={}, pairs={})
        self.begin()
        programs, rounds = self.programs(), self._store.reader.rounds()
        key = (len(programs), [(one.samples_sha, one.update_sha) for one in rounds])
        if self._base is None or self._base[0] != key:
            before = self._snapshot()
            version = before.version + 1
            changes = ((version, change) for change in self._changes(programs.values()))
            self._base = key, extend(before, changes, version)
        return self._base[1]

    def programs(self) -> dict[int, StatedProgram]:
        """Return the candidates whose performance state is known, by `seq`."""
        reader = self._store.reader
        found = (
            (one.seq, reader.document(one, STATE, StatedProgram)) for one in self._context.members()
        )
        return {seq: program for seq, program in found if program is not None}

    def situation(self, member: Member, state: str, used: tuple[str, ...] = ()) -> Situation:
        """Return where a technique would be applied: to `member`, which is in `state`."""
        return Situation(self._arch_key, state, next(iter(member.techniques[-1:]), None), used)

    @property
    def is_behind(self) -> bool:
        """Whether a closed round was not learned from, or what was learned not told, by now."""
        last = self._context.last_round()
        if last is None or self._context.state().round_open or not self.is_on:
            return False
        return last.samples_sha is None or self._shared != self._learned()

    def learn(self, is_final: bool = False) -> None:
        """Keep what the run has taught and tell the shared base.

        Args:
            is_final: No further candidate will come: a composite that could still have been taken
                apart is learned whole.
        """
        last = self._context.last_round()
        if last is None or not self.is_on:
            return
        self._keep(last, is_final)
        self._share(is_final)

    def teaching(self, is_final: bool = False) -> Teaching:
        """Return what is known of the run beside its candidates."""
        state, base = self._context.state(), self.base()
        run, parts = state.settings, self.parts
        programs = self.programs().items()
        return Teaching(
            run=THIS_RUN,
            kernel=run.kernel,
            op_type="" if parts is None else parts.op_type,
            arch=run.arch,
            device="sim" if run.gpu is None else run.gpu.name,
            toolkit="" if parts is None else parts.toolkit(),
            day=datetime.fromtimestamp(state.created_us / 1e6, UTC).date().isoformat(),
            min_effect=run.search.min_effect,
            catalogue=frozenset(base.techniques),
            placed={seq: Placed(one.state.id, one.signature) for seq, one in programs},
            is_final=is_final,
        )

    @property
    def _arch_key(self) -> str:
        run = self._context.state().settings
        provenance = Provenance.ESTIMATED if run.gpu is None else Provenance.MEASURED
        return arch_key(run.arch, provenance)

    def _snapshot(self) -> KnowledgeBase:
        sha = self._context.state().knowledge_sha
        if sha is None:  # an older run, which had ended before there was a base
            return load_seed()
        if self._first is None or self._first[0] != sha:
            self._first = sha, parse_base(self._store.reader.blob(sha).decode())
        return self._first[1]

    def _changes(self, programs: Iterable[StatedProgram]) -> Iterator[Sample | Edit]:
        """Yield what the run has added to its snapshot."""
        for program in programs:
            yield from program.edits
        taught, updates = self._store.reader.taught(), self._store.reader.updates()
        revoked = {name for one in taught.values() for name in one.revoked}
        for number in sorted({*taught, *updates}):
            if number in taught:
                yield from (one for one in taught[number].samples if one.id not in revoked)
            if number in updates:
                yield from updates[number].edits

    def _keep(self, last: RoundRow, is_final: bool) -> None:
        """Keep what is new since the rounds before, and what no longer holds."""
        members, branches = self._context.members(), self._store.reader.branches()
        samples = make_samples(members, branches, self.teaching(is_final))
        taught = self._store.reader.taught()
        known = [sample.id for one in taught.values() for sample in one.samples]
        gone = {name for one in taught.values() for name in one.revoked}
        new = tuple(self._expected(one) for one in samples if one.id not in set(known))
        revoked = tuple(one for one in revoked_samples(known, samples) if one not in gone)
        if last.samples_sha is None or new or revoked:
            before = taught.get(last.number, Taught())
            kept = Taught(samples=before.samples + new, revoked=before.revoked + revoked)
            self._store.memory.keep_taught(last.number, kept)

    def _expected(self, sample: Sample) -> Sample:
        """Return `sample` with the prediction of the base, if it has none yet."""
        if sample.predicted is not None:
            return sample
        situation = Situation(self._arch_key, sample.state, sample.previous)
        found = predict(self.base(), situation, sample.techniques)
        predicted = {"predicted": found.gain, "predicted_interval": found.interval}
        return sample.model_copy(update=predicted)

    def _learned(self) -> object:
        return [(one.samples_sha, one.update_sha) for one in self._store.reader.rounds()]

    def _share(self, is_final: bool) -> None:
        """Tell the shared base all that the run has learned; one that is busy is told later."""
        if self.parts is not None and self.parts.share is not None:
            try:
                with self.parts.share() as shared:
                    self._tell(shared)
            except LedgerBusy:
                if is_final:  # there is no later time to tell it
                    raise
            except SetupError as error:  # it stays in the run's own file
                self.parts.say(f"what this run learned is not shared: {error}")
        self._shared = self._learned()

    def _tell(self, shared: KnowledgeStore) -> None:
        run = self._context.state().id
        taught = self._store.reader.taught().values()
        self._edit(shared, (edit for one in self.programs().values() for edit in one.edits))
        shared.learn(renamed(sample, run) for one in taught for sample in one.samples)
        for name in (name for one in taught for name in one.revoked):
            shared.forget(f"{run}/{name.removeprefix(f'{THIS_RUN}/')}")
        updates = self._store.reader.updates().values()
        self._edit(shared, (edit for one in updates for edit in one.edits))
        reader = self._store.reader
        self._edit(shared, receipt_notes(reader, self._context.members(), reader.samples()))

    def _edit(self, shared: KnowledgeStore, edits: Iterable[Edit]) -> None:
        """Apply the edits that the shared base, which others change too, still takes."""
        run = self._context.state().id
        known = {sample.id for sample in shared.samples(run=run)}
        for edit in (renamed(one, run) for one in edits):
            if refusal(edit, shared.base(), known) is None:
                with suppress(ToolError):  # another run has changed the base meanwhile
                    shared.edit((edit,))


PROMOTION = "promotion"
"""Kind of the document that says how the promotion of a candidate ended."""


def promotion_of(reader: RunReader, member: Member) -> PromotionResult | None:
    """Return how the promotion of a candidate ended; None if it was not put to one."""
    return reader.document(member, PROMOTION, PromotionResult)


def receipt_notes(
    reader: RunReader, members: Iterable[Member], samples: Iterable[Sample]
) -> Iterator[AddNote]:
    """Yield a remark for every gain that a promotion has proven, with the names of its receipts."""
    by_id = {sample.id: sample for sample in samples if sample.outcome == "gained"}
    for member in members:
        sample, promotion = by_id.get(f"{THIS_RUN}/{member.seq}"), promotion_of(reader, member)
        if sample is None or promotion is None or promotion.outcome != "promoted":
            continue
        names = [
            f"{promotion.kernel.removesuffix(f'_{promotion.domain[0]}')}"
            f"/{PurePath(file.receipt_path).name}"
            for file in promotion.files
            if file.action == "written"
        ]
        text = f"promoted on {promotion.gpu.name}; receipts: {', '.join(names)}"
        yield AddNote(
            state=sample.state,
            techniques=sample.techniques,
            text=text[:WORDS_LIMIT],
            reason="a gain that a promotion has proven",
            evidence=(sample.id,),
            author="rule",
        )
