"""Learns samples one by one, as one of several runs at once.

Usage: python knowledge_learner.py FOLDER RUN COUNT; begins when a line comes on stdin.
"""

import sys
from pathlib import Path

from kopt.search.knowledge.edits import AddNote
from kopt.search.knowledge.store import KnowledgeStore
from support.knowledge_cases import edit, sample


def main(folder: Path, run: str, count: int) -> None:
    """Learn `count` samples of `run`, and one that every process has."""
    print("ready", flush=True)
    sys.stdin.readline()
    with KnowledgeStore(folder, say=_fail) as store:
        store.learn([sample(0, run="shared")])
        for number in range(count):
            store.learn([sample(number, run=run)])
        store.edit([edit(AddNote, text=f"by {run}", evidence=(f"{run}/0",))])


def _fail(line: str) -> None:
    raise AssertionError(f"another process is no damage: {line}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
