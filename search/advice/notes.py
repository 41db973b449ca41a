"""Notes of kopt's documents that fit a program, quoted with the reason they fit.

They are read as every document of a run is: logged with it, and not at all where their source is
hidden, as in a study free of earlier results.
"""

from dataclasses import dataclass
from itertools import islice

from kopt.config.errors import KoptError
from kopt.config.gpu_specs import gpu_for_arch, load_gpus
from kopt.config.settings import Settings
from kopt.kernels.problem import Problem
from kopt.kernels.profile_result import ProfileResult
from kopt.search.records.members import Member
from kopt.tools.docs.own.markdown_chunks import note_uid

from .fitting_note import FittingNote
from .note_rules import NoteRule, ProfiledProgram, fitting
from .retrieval import Asker, read_for_run

MOST_NOTES = 2
"""The most notes that a reply can quote beside memory and the leader's profile."""
NOTES = "notes"
"""The source of the notes, which can be hidden."""
_QUOTED = ("When", "Change", "Measure", "Gain", "Cannot", "Pitfall")


@dataclass(frozen=True)
class NoteFinder:
    """Looks notes up for one run."""

    settings: Settings
    asker: Asker
    problem: Problem

    def notes_on(self, member: Member, profile: ProfileResult | None) -> tuple[FittingNote, ...]:
        """Return the notes that fit a candidate of the run; () where its profile is not known.

        Notes that cannot be read, or not logged, are left out: nothing of a run rests on them.
        """
        if profile is None or NOTES in self.settings.without_sources:
            return ()
        found = islice(fitting(self._program(member, profile)), MOST_NOTES)
        try:
            return tuple(self._noted(member, rule, why) for rule, why in found)
        except KoptError:
            return ()

    def _program(self, member: Member, profile: ProfileResult) -> ProfiledProgram:
        inputs = (one for one in self.problem.tensors if one.role == "in")
        return ProfiledProgram(
            profile=profile,
            source=member.source,
            static=tuple(one.name for one in inputs if one.static),
            gpu=load_gpus().get(profile.gpu) or gpu_for_arch(profile.arch),
        )

    def _noted(self, member: Member, rule: NoteRule, why: str) -> FittingNote:
        uid = note_uid(rule.family, rule.heading)
        chunk = read_for_run(uid, self.asker, self.settings).document
        return FittingNote(
            candidate=member.seq,
            document=uid,
            title=chunk.title,
            family=rule.family,
            why=why,
            text=_quoted(chunk.body),
        )


def _quoted(body: str) -> str:
    """Return what a note says to do, without its heading and its references."""
    lines = (line for line in body.split("\n") if line.partition(":")[0] in _QUOTED)
    return " ".join(" ".join(lines).split())
