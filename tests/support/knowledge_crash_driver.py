"""Learns into a knowledge base again and again, killed by SIGKILL at every step of its writes.

A step is a statement that writes, a sync, a rename or a deletion (`crash_driver.py`). After each
kill the same work is done again from its beginning, as a run that is resumed does; it must end like
undisturbed work, in the ledger and in base.yaml.

Usage: python knowledge_crash_driver.py FOLDER; prints one JSON document.
"""

import json
import os
import shutil
import sqlite3
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kopt.search.knowledge import ledger
from kopt.search.knowledge import store as store_module
from kopt.search.knowledge.base import dump_base
from kopt.search.knowledge.edits import AddNote
from kopt.search.knowledge.ledger import FILE_NAME
from kopt.search.knowledge.projection import LedgerContent, project
from kopt.search.knowledge.store import KnowledgeStore
from support.crash_driver import count_writes, counted, forked
from support.knowledge_cases import ENTRY, RUN, SEED, edit, sample

# Of a small seed everything is projected and rendered in a moment.
SMALL = replace(SEED, entries={ENTRY: SEED.entries[ENTRY]}, pairs={}, techniques={}, states={})
THEIRS = dump_base(project(SMALL, LedgerContent("k2", 1, [(1, sample(1))])))


def work(folder: Path) -> None:
    """Do one of everything that changes a base."""
    with KnowledgeStore(folder, say=_fail) as store:
        store.learn([sample(1), sample(2)])
        store.learn([sample(3)])
        store.edit([edit(AddNote, text="t", evidence=(f"{RUN}/3",))])
        store.import_(THEIRS)
        store.forget(f"{RUN}/2")


def _fail(line: str) -> None:
    raise AssertionError(f"a kill is no damage: {line}")


def seen(folder: Path) -> dict[str, Any]:
    """Return what the base in `folder` is at every version, and its file."""
    with KnowledgeStore(folder, say=_fail) as store:
        versions = [dump_base(store.base(n)) for n in range(store.base().version + 1)]
        samples = [one.id for one in store.samples()]
        now, text = dump_base(store.base()), store.path.read_text("utf-8")
    connection = sqlite3.connect(folder / FILE_NAME)
    (check,) = connection.execute("PRAGMA integrity_check").fetchone()
    connection.close()
    files = sorted(path.name for path in folder.iterdir() if not path.name.startswith(".new-"))
    return {
        "versions": versions,
        "samples": samples,
        "now": now,
        "text": text,
        "check": check,
        "files": files,
    }


def main(root: Path) -> dict[str, Any]:
    """Kill at every step once and return what was seen."""
    patches = pytest.MonkeyPatch()
    patches.setattr(ledger, "token_hex", "0".zfill)  # the same origin every time
    patches.setattr(store_module, "load_seed", lambda: SMALL)
    count_writes()
    os.rename = counted(os.rename)
    whole = root / "whole"
    _, steps = forked(partial(work, whole), fatal=0)
    expected = seen(whole)
    problems: list[str] = []
    killed = 0
    for fatal in range(1, steps + 1):
        folder = root / f"killed-{fatal}"
        died, _ = forked(partial(work, folder), fatal)
        killed += died
        forked(partial(work, folder), fatal=0)
        found = seen(folder)
        problems += [
            f"step {fatal}: other {key}" for key in expected if found[key] != expected[key]
        ]
        shutil.rmtree(folder)
    return {"steps": steps, "killed": killed, "problems": problems}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
