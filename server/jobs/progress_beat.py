"""What somebody who waits for a job is told: each time more than before."""

from .records import JobView, Progress

_SLOWNESS_S = 30.0
"""After so long within one step, half of the step is told."""
_LEAST_STEP = 1e-3


class ProgressBeat:
    """The stream of progress of one `wait`.

    Clients take progress for a sign of life, and the protocol wants it to rise. Between two steps
    of the work, `done` creeps towards the next whole step without reaching it.
    """

    def __init__(self, every_s: float) -> None:
        """Tell at least so often."""
        self._every_s = every_s
        self._known: Progress | None = None
        self._known_at = 0.0
        self._told_at = 0.0
        self._told_done = -1.0

    def next(self, view: JobView, now_s: float) -> Progress | None:
        """Return what to tell now; None if that was told a moment ago."""
        known = view.progress or Progress(done=0.0, message=view.state)
        is_new = known != self._known
        if is_new:
            self._known, self._known_at = known, now_s
        if not is_new and now_s - self._told_at < self._every_s:
            return None
        waited_s = now_s - self._known_at
        done = known.done + waited_s / (waited_s + _SLOWNESS_S)
        if is_new:  # news without an advance, such as that work begins again, is told too
            done = max(done, self._told_done + _LEAST_STEP)
        if known.total is not None:
            done = min(done, known.total)
        if done <= self._told_done:
            return None
        self._told_at, self._told_done = now_s, done
        seconds = f" ({waited_s:.0f} s)" if waited_s >= 1.0 else ""
        return known.model_copy(update={"done": done, "message": known.message + seconds})
