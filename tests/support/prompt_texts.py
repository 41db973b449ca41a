"""Prompts as text, and whether they are those that were reviewed."""

from pathlib import Path

import pytest

from kopt.search.models.model import ModelRequest

SNAPSHOTS = Path(__file__).parents[1] / "search" / "agents" / "snapshots"


def is_reviewed(name: str, found: str) -> bool:
    """Return whether a snapshot holds `found`; without one it is written and the test fails.

    Renew after a change that is meant: delete the file that is named and run the test once.
    """
    snapshot = SNAPSHOTS / name
    if not snapshot.exists():
        snapshot.write_text(found, "utf-8")
        pytest.fail(f"wrote {snapshot}: read it, commit it, and run the test again")
    return snapshot.read_text("utf-8") == found


def text_of(request: ModelRequest) -> str:
    """Return what a request adds to the common part: its task, and its first message."""
    parts = [
        f"role: {request.role}, id: {request.id}",
        *(f"--- system, cached {block.cache}\n{block.text}" for block in request.system[1:]),
        *(f"--- user\n{block['text']}" for block in request.messages[0]["content"]),
    ]
    return "\n\n".join(parts) + "\n"
