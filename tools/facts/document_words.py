"""What one result says as text, for agents and for pages: its facts, cut to a limit."""

from .fitting import Facts, fitted
from .rendering import render


def document_words(facts: Facts) -> str:
    """Return what a profile or a check says, without the names of its candidate, as far as fits."""
    kept = {name: value for name, value in facts.items() if name not in ("kernel", "candidate")}
    return render(fitted(kept, "the rest is left out"))
