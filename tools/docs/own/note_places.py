"""Where a note of kopt's documents stands: its uid by the family and the heading that name it."""

from importlib.resources import files

from .markdown_chunks import sections


def note_uid(family: str, heading: str) -> str:
    """Return the uid of a note, as `kopt docs show` takes it.

    Raises:
        LookupError: The family has no such note.
    """
    name = f"{family}.md"
    text = files("kopt.tools.docs").joinpath("notes", name).read_text("utf-8")
    for section in sections(text):
        if section.headings[1:] == (heading,):
            return f"notes:tools/docs/notes/{name}#{section.start_line}"
    raise LookupError(f"{name} has no note {heading!r}")
