"""One technique that memory suggests, with what is expected of it and what that rests on."""

from kopt.kernels.record import Record
from kopt.kernels.status import Provenance


class Remembered(Record):
    """One technique that memory suggests for one program."""

    technique: str
    """Id; goes into the candidate's techniques."""
    family: str
    description: str
    candidate: int
    """`seq` of the program that it is suggested for."""
    state: str
    """Id of that program's performance state."""
    confidence: float
    """Of the match of the program with the state, 0 to 1."""
    speed: float
    """Expected speed after it over the speed before, where it has an effect."""
    interval: tuple[float, float]
    """Where the next such ratio lies with 95 %."""
    works: float
    """Chance that it passes the checks and has an effect beyond noise, 0 to 1."""
    tries: int
    """In this state on this architecture."""
    rests_on: tuple[str, ...]
    """What the expectation rests on, nearest first: results, priors, states it inherits from."""
    evidence: tuple[str, ...]
    """Ids of the last samples behind it, `run/candidate`; empty for a prior alone."""
    is_exploration: bool
    """Suggested because little is known of it."""
    provenance: Provenance = Provenance.ESTIMATED
    """An expectation is estimated, whatever it rests on."""
