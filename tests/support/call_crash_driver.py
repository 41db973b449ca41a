"""Asks a model for a few replies, killed by SIGKILL at every single step of its writes.

As `crash_driver.py`, whose steps it counts, with one more: the moment in which the provider has
charged for a call and the reply is not yet here. What the provider charged stands in a file of its
own, so that the ledger can be held against it.

Usage: python call_crash_driver.py FOLDER; prints one JSON document.
"""

import json
import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kopt.search.models.errors import CallFailed
from kopt.search.models.model import ModelReply, ModelRequest
from kopt.search.models.prices import load_prices
from kopt.search.store.run_rows import abandon_open_calls
from support.call_ledgers import OneThreadLedger, desk_for, open_ledger
from support.crash_driver import NO_OP_EVERY, STEPS, count_writes, forked
from support.model_requests import MODEL, ask_for, say

CALLS = ("r1/plan/0", "r1/b0/coder/0")
CUT = "r1/b0/coder/0"  # the first time it is asked in a process, its stream breaks


@dataclass
class ChargingModel:
    """Answers every call, and charges for it before the reply is there."""

    charges: Path
    is_cut: bool = False

    def reply(self, request: ModelRequest) -> ModelReply:
        """Return the reply of this call, always the same."""
        with self.charges.open("a") as file:
            file.write(request.id + "\n")
        STEPS.take()
        if request.id == CUT and not self.is_cut:
            self.is_cut = True
            raise CallFailed(kind="time", message="cut off", may_cost=True)
        return say(f"answer to {request.id}")


def ask_all(home: Path) -> None:
    """Take the run below `home` up and ask for everything."""
    home.mkdir(exist_ok=True)
    with open_ledger(home) as ledger:
        ledger.do(lambda: abandoned(ledger))
        desk = desk_for(ChargingModel(home / "charges"), ledger)
        for call in CALLS:
            reply = desk.ask(ask_for(call))
            assert reply.text == f"answer to {call}"


def abandoned(ledger: OneThreadLedger) -> None:
    """Close what a killed process left open."""
    with ledger.store.log.transaction() as connection:
        abandon_open_calls(connection)


def violations(home: Path) -> list[str]:
    """Return what the ledger below `home` has not got right."""
    charged = Counter((home / "charges").read_text().split())
    price = load_prices(home).cost_microusd(MODEL, say().usage)
    found: list[str] = []
    with open_ledger(home) as ledger:
        rows = ledger.rows("id, state, cost_microusd")
        total = ledger.spend().total.microusd
    rows_of = Counter(row.partition("#")[0] for row, _, _ in rows)
    if any(state not in ("done", "unknown") for _, state, _ in rows):
        found.append("a row is open")
    if any(charged[call] > rows_of[call] for call in CALLS):
        found.append("a charge without a row")
    done = Counter(row.partition("#")[0] for row, state, _ in rows if state == "done")
    if done != Counter(CALLS):
        found.append("a call is not answered exactly once")
    if total < price * charged.total():
        found.append("more was charged than is in the ledger")
    return found


def asks_again(home: Path) -> bool:
    """Return whether a call is made where everything is answered."""
    before = (home / "charges").read_bytes()
    forked(partial(ask_all, home), fatal=0)
    return (home / "charges").read_bytes() != before


def main(root: Path) -> dict[str, Any]:
    """Kill at every step once and return what was seen."""
    count_writes()
    _, steps = forked(partial(ask_all, root / "whole"), fatal=0)
    problems = violations(root / "whole")
    killed = 0
    for fatal in range(1, steps + 1):
        home = root / f"killed-{fatal}"
        died, _ = forked(partial(ask_all, home), fatal)
        killed += died
        forked(partial(ask_all, home), fatal=0)
        if fatal % NO_OP_EVERY == 0 and asks_again(home):
            problems.append(f"step {fatal}: an answered call was made again")
        problems += [f"step {fatal}: {violation}" for violation in violations(home)]
        shutil.rmtree(home)
    return {"steps": steps, "killed": killed, "problems": problems}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
