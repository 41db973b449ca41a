"""A note that fits a program, as suggestions and agents quote it; finding it: `notes.py`."""

from kopt.kernels.record import Record


class FittingNote(Record):
    """A note that fits a program."""

    candidate: int
    """`seq` of the program."""
    document: str
    """Uid, as `kopt docs show` takes it."""
    title: str
    family: str
    why: str
    """Why it fits, in a clause with the numbers of this program."""
    text: str
    """What the note says, quoted, in one line."""
