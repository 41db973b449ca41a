"""No number of branches spends more on models than the budget, whatever the calls turn out to be.

The provider in these tests keeps its own account, as a bill would show it.
"""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kopt.search.models.errors import BudgetSpent, CallFailed
from kopt.search.models.model import ModelReply, ModelRequest, Usage
from kopt.search.models.prices import PriceTable, load_prices
from kopt.search.models.prompt_bound import bound_prompt
from kopt.search.records.budget import Budget
from support.call_ledgers import desk_for, open_ledger
from support.model_requests import MODEL, PlayedModel, ask_for, say

PRICES = load_prices(Path("/nowhere"))
WORST = PRICES.worst_case_microusd(MODEL, bound_prompt(ask_for()), 1000)
"""Of one call of these tests, 1e-6 USD."""
BRANCHES = 8


@dataclass
class Provider:
    """Answers at random lengths, breaks streams, and charges for both."""

    draw: random.Random
    prices: PriceTable = PRICES
    charged_microusd: int = 0
    charged_tokens: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reply(self, request: ModelRequest) -> ModelReply:
        """Return a reply that has between nothing and everything that it may have."""
        with self.lock:
            kind = self.draw.random()
            share = self.draw.choice((0.0, self.draw.random(), 1.0))
            if kind < 0.1:
                raise CallFailed(kind="time", message="busy", status=429, retry_after_s=0.0)
            written = int(bound_prompt(request).tokens * share)
            output = int(request.max_output_tokens * share)
            usage = Usage(cache_write_5m_tokens=written, output_tokens=output)
            self.charged_microusd += self.prices.cost_microusd(MODEL, usage)
            self.charged_tokens += usage.total_tokens
            if kind < 0.25:
                raise CallFailed(kind="time", message="cut off", may_cost=True)
        return say(usage=usage)


@pytest.mark.parametrize("seed", range(6))
def test_branches_together_never_spend_more_than_the_budget(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    provider = Provider(draw)
    budget = Budget(usd=WORST * draw.uniform(1.0, 12.0) / 1e6, tokens=draw.randint(4000, 40_000))
    assert budget.microusd is not None and budget.tokens is not None
    highest = 0

    with open_ledger(tmp_path, budget) as ledger:
        desk = desk_for(provider, ledger, concurrency=BRANCHES)

        def branch(number: int) -> None:
            nonlocal highest
            for turn in range(12):
                try:
                    desk.ask(ask_for(f"r1/b{number}/coder/{turn}"))
                except BudgetSpent:
                    return
                except CallFailed:
                    continue
                finally:
                    highest = max(highest, ledger.spend().total.microusd)

        with ThreadPoolExecutor(BRANCHES) as pool:
            list(pool.map(branch, range(BRANCHES)))
        spend = ledger.spend()
    assert provider.charged_microusd <= spend.total.microusd <= highest <= budget.microusd
    assert provider.charged_tokens <= spend.total.tokens <= budget.tokens
    assert spend.open.microusd == 0


def test_what_does_not_fit_beside_the_calls_under_way_waits_for_them(tmp_path: Path) -> None:
    begun, may_end = threading.Semaphore(0), threading.Event()

    def play(request: ModelRequest) -> ModelReply:
        begun.release()
        assert may_end.wait(5.0)
        return say()

    model = PlayedModel(play)
    with open_ledger(tmp_path, Budget(usd=2.5 * WORST / 1e6)) as ledger:
        desk = desk_for(model, ledger)
        with ThreadPoolExecutor(3) as pool:
            asked = [pool.submit(desk.ask, ask_for(f"r1/b{n}/coder/0")) for n in range(3)]
            assert begun.acquire(timeout=5.0) and begun.acquire(timeout=5.0)
            assert len(ledger.rows("id")) == 2 and not any(call.done() for call in asked)
            may_end.set()
            assert [call.result(timeout=5.0).text for call in asked] == ["done"] * 3
        assert ledger.spend().total.microusd == 3 * 340


def test_budget_that_no_answer_can_leave_room_in_is_told_at_once(tmp_path: Path) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def play(request: ModelRequest) -> ModelReply:
        begun.set()
        assert may_end.wait(5.0)
        return say()

    with open_ledger(tmp_path, Budget(usd=1.5 * WORST / 1e6)) as ledger:
        desk = desk_for(PlayedModel(play), ledger)
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(desk.ask, ask_for("r1/b0/coder/0"))
            assert begun.wait(5.0)
            with pytest.raises(BudgetSpent):
                desk.ask(ask_for("r1/b1/coder/0", max_output_tokens=10_000))
            may_end.set()
            assert first.result(timeout=5.0).text == "done"


@pytest.mark.parametrize("fails", [True, False])
def test_wait_ends_with_whatever_ends_the_call_under_way(tmp_path: Path, fails: bool) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def play(request: ModelRequest) -> ModelReply | CallFailed:
        if request.id != "r1/b0/coder/0":
            return say("second")
        begun.set()
        assert may_end.wait(5.0)
        return CallFailed(kind="us", message="no", status=400) if fails else say("first")

    with open_ledger(tmp_path, Budget(usd=1.5 * WORST / 1e6)) as ledger:
        desk = desk_for(PlayedModel(play), ledger)
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(desk.ask, ask_for("r1/b0/coder/0"))
            assert begun.wait(5.0)
            second = pool.submit(desk.ask, ask_for("r1/b1/coder/0"))
            may_end.set()
            assert second.result(timeout=5.0).text == "second"
            assert isinstance(first.exception(timeout=5.0), CallFailed if fails else type(None))
