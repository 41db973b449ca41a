"""What `kopt gpu` asks resident evaluators: how they are, to end, and to be there."""

from typing import Literal

from kopt.config.settings import Settings
from kopt.kernels.record import Record

from .greeting import EvaluatorStatus, Wish, greet, peer_of
from .place import ResidentPlace, all_places


class ResidentEvaluators(Record):
    """The resident evaluators of a KOPT_HOME."""

    evaluators: tuple[EvaluatorStatus, ...]
    unheard: tuple[str, ...] = ()
    """Sockets behind which something is that does not answer, and which process that is."""


def ask_evaluators(
    settings: Settings,
    kind: Literal["status", "stop", "end"],
    device: str | None = None,
) -> ResidentEvaluators:
    """Return what each evaluator says of itself.

    Args:
        settings: Whose KOPT_HOME names them.
        kind: As in `greeting.Wish`.
        device: `cuda:<index>`, to ask those of that GPU alone.
    """
    places = [one for one in all_places(settings) if device in (None, one.device)]
    found: list[EvaluatorStatus] = []
    unheard: list[str] = []
    for place in places:
        status = _asked(place, kind)
        if isinstance(status, str):
            unheard.append(status)
        elif status is not None:
            found.append(status)
    return ResidentEvaluators(evaluators=tuple(found), unheard=tuple(unheard))


def _asked(
    place: ResidentPlace, kind: Literal["status", "stop", "end"]
) -> EvaluatorStatus | str | None:
    """Return the status, the socket of one that does not answer, or None where none listens."""
    connection = place.connected()
    if connection is None:
        return None
    with connection:
        try:
            greeting = greet(connection, Wish(kind=kind))
        except TimeoutError:
            return f"{place.socket_path} (process {peer_of(connection).pid})"
    return str(place.socket_path) if greeting is None else greeting.status
