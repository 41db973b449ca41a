"""What the reflector said that a round has taught, in words."""

from kopt.kernels.record import Record
from kopt.search.agents.plans import Reflection
from kopt.search.store.run_reader import RunReader


class Lessons(Record):
    """One round's."""

    round: int
    reflection: Reflection


def read_lessons(reader: RunReader) -> tuple[Lessons, ...]:
    """Return the reflections of the run, by round; () where no model reflected."""
    return tuple(
        Lessons(
            round=row.number,
            reflection=Reflection.model_validate_json(reader.blob(row.reflection_sha)),
        )
        for row in reader.rounds()
        if row.reflection_sha is not None
    )
