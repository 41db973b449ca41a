"""The one error of this folder; `harvest` turns it into a skipped source."""


class SourceUnavailable(Exception):
    """A source cannot be had; the message is one line that says why and what to do."""
