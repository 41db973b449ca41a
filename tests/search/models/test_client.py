"""Asking at the desk: recorded once, retried while it is free, refused when it is too dear."""

from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.search.models.call_ledger import Reservation
from kopt.search.models.errors import BudgetSpent, CallFailed, FailureKind, Halt, Stopped
from kopt.search.models.model import ModelReply, ModelRequest, Usage
from kopt.search.records.budget import Amount, Budget, Spend
from kopt.search.store.run_rows import abandon_open_calls
from support.call_ledgers import desk_for, open_ledger
from support.model_requests import PlayedModel, ask_for, say

BUSY = CallFailed(kind="time", message="overloaded", status=529, retry_after_s=0.0)
DOWN = CallFailed(kind="time", message="down", status=500, retry_after_s=0.0)
CUT = CallFailed(kind="time", message="cut off", may_cost=True)


def after(*failures: CallFailed) -> PlayedModel:
    """Return a model that fails so, then answers."""
    left = list(failures)
    return PlayedModel(lambda request: left.pop(0) if left else say("at last"))


def always(failure: CallFailed) -> PlayedModel:
    return PlayedModel(lambda request: failure)


def test_answered_call_is_never_made_again(tmp_path: Path) -> None:
    reply = say("thought", content=({"type": "thinking", "thinking": "a", "signature": "s"},))
    model = PlayedModel(lambda request: reply)
    with open_ledger(tmp_path) as ledger:
        first = desk_for(model, ledger).ask(ask_for())
    with open_ledger(tmp_path) as ledger:  # another process
        again = desk_for(model, ledger).ask(ask_for())
        assert ledger.rows("id, state") == [("r1/b0/coder/0", "done")]
    assert first == again == reply
    assert model.asked == ["r1/b0/coder/0"]


def test_cost_and_tokens_of_a_call_are_settled_from_its_usage(tmp_path: Path) -> None:
    usage = Usage(
        input_tokens=100,
        cache_write_5m_tokens=10,
        cache_write_1h_tokens=20,
        cache_read_tokens=1000,
        output_tokens=50,
    )
    model = PlayedModel(lambda request: say(usage=usage, latency_s=2.5))
    with open_ledger(tmp_path) as ledger:
        desk_for(model, ledger).ask(ask_for())
        columns = "role, round, branch, cost_microusd, input_tokens, cache_write_tokens,"
        (row,) = ledger.rows(f"{columns} cache_read_tokens, output_tokens, stop, latency_s")
        spend = ledger.spend()
    cost = 100 * 4 + 10 * 5 + 20 * 8 + 1000 * 0.2 + 50 * 20
    assert row == ("coder", 1, "r1/b0", cost, 100, 30, 1000, 50, "end_turn", 2.5)
    assert (spend.total.microusd, spend.total.tokens, spend.open.tokens) == (cost, 1180, 0)


def test_busy_service_is_asked_again_within_one_row(tmp_path: Path) -> None:
    model = after(*[BUSY] * 20, *[DOWN] * 5)
    with open_ledger(tmp_path) as ledger:
        assert desk_for(model, ledger).ask(ask_for()).text == "at last"
        assert ledger.rows("id, state, attempts") == [("r1/b0/coder/0", "done", 26)]
        assert ledger.events() == ["call_started", *["call_retried"] * 25, "call_done"]


def test_broken_stream_is_counted_at_its_worst_and_asked_under_a_new_id(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        assert desk_for(after(CUT, CUT), ledger).ask(ask_for()).text == "at last"
        rows = ledger.rows("id, state, cost_microusd = reserved_microusd, why")
    name = "r1/b0/coder/0"
    cut = ("unknown", 1, "cut off")
    assert rows == [(name, *cut), (f"{name}#2", *cut), (f"{name}#3", "done", 0, None)]


def test_reply_found_under_a_later_id_is_the_answer(tmp_path: Path) -> None:
    model = after(CUT)
    with open_ledger(tmp_path) as ledger:
        desk = desk_for(model, ledger)
        desk.ask(ask_for())
        assert desk.ask(ask_for()).text == "at last"
    assert len(model.asked) == 2


@pytest.mark.parametrize("kind", ["us", "user", "time"])
def test_given_up_call_costs_nothing_if_the_service_turned_it_away(
    tmp_path: Path, kind: FailureKind
) -> None:
    failure = CallFailed(kind=kind, message="no", status=500, retry_after_s=0.0)
    with open_ledger(tmp_path) as ledger:
        with pytest.raises(CallFailed) as caught:
            desk_for(always(failure), ledger).ask(ask_for())
        assert ledger.rows("state, cost_microusd, why") == [("failed", 0, "no")]
        assert ledger.spend().total.tokens == 0
    assert caught.value.kind == kind


def test_given_up_call_can_be_asked_again_later(tmp_path: Path) -> None:
    model = after(*[DOWN] * 6)
    with open_ledger(tmp_path) as ledger:
        desk = desk_for(model, ledger)
        with pytest.raises(CallFailed):
            desk.ask(ask_for())
        assert desk.ask(ask_for()).text == "at last"
        assert [state for (state,) in ledger.rows("state")] == ["failed", "done"]


def test_call_of_unknown_price_is_not_made(tmp_path: Path) -> None:
    model = PlayedModel()
    with open_ledger(tmp_path) as ledger:
        with pytest.raises(SetupError, match=r"the price of some-model is not known.*prices\.yaml"):
            desk_for(model, ledger).ask(ask_for(model="some-model"))
        assert ledger.rows("id") == []
    assert model.asked == []


@pytest.mark.parametrize("budget", [Budget(usd=0.01), Budget(tokens=2000)])
def test_call_that_might_cost_more_than_is_left_is_not_made(tmp_path: Path, budget: Budget) -> None:
    model = PlayedModel()
    with open_ledger(tmp_path, budget) as ledger:
        with pytest.raises(BudgetSpent, match="resume the run with a larger budget"):
            desk_for(model, ledger).ask(ask_for())
        assert ledger.rows("id") == []
    assert model.asked == []


def test_larger_budget_lets_the_run_go_on(tmp_path: Path) -> None:
    model = PlayedModel()
    with open_ledger(tmp_path, Budget(usd=0.01)) as ledger, pytest.raises(BudgetSpent):
        desk_for(model, ledger).ask(ask_for())
    with open_ledger(tmp_path, Budget(usd=1.0)) as ledger:
        assert desk_for(model, ledger).ask(ask_for()).text == "done"


def test_warning_comes_once_when_most_of_a_budget_is_spent(tmp_path: Path) -> None:
    usage = Usage(input_tokens=10_000, output_tokens=1000)  # 0.06 USD
    model = PlayedModel(lambda request: say(usage=usage))
    with open_ledger(tmp_path, Budget(usd=0.3)) as ledger:
        desk = desk_for(model, ledger)
        for turn in range(3):
            desk.ask(ask_for(f"r1/b0/coder/{turn}"))
        assert "budget_warning" not in ledger.events()
        for turn in range(3, 5):
            desk.ask(ask_for(f"r1/b0/coder/{turn}"))
        assert ledger.events().count("budget_warning") == 1


def test_conversation_is_taken_up_from_its_last_answered_turn(tmp_path: Path) -> None:
    model = PlayedModel(lambda request: say(f"answer to {request.id}"))
    with open_ledger(tmp_path) as ledger:
        desk = desk_for(model, ledger)
        for turn in (0, 1, 9, 10):
            desk.ask(ask_for(f"r1/b0/coder/{turn}"))
        desk.ask(ask_for("r1/b0/coder/10/11"))
        desk.ask(ask_for("r1/b01/coder/12"))
        last = desk.last_of("r1/b0/coder")
        assert desk.last_of("r1/b0/code") is None
    assert last is not None
    assert (last.id, last.reply.text) == ("r1/b0/coder/10", "answer to r1/b0/coder/10")
    assert last.request == ask_for("r1/b0/coder/10")


def test_next_turn_of_a_conversation_sets_less_aside(tmp_path: Path) -> None:
    long = ({"role": "user", "content": "m" * 60_000},)
    model = PlayedModel(lambda request: say(usage=Usage(input_tokens=20_000, output_tokens=7)))
    with open_ledger(tmp_path) as ledger:
        desk = desk_for(model, ledger)
        reply = desk.ask(ask_for("r1/b0/coder/0", messages=long))
        said = {"role": "assistant", "content": list(reply.content)}
        turn = (*long, said, {"role": "user", "content": "go on"})
        desk.ask(ask_for("r1/b0/coder/1", messages=turn))
        (first,), (second,) = ledger.rows("reserved_tokens")
    assert first > 60_000 and 20_000 < second < 25_000


def test_provider_that_counts_more_than_the_worst_case_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = PlayedModel(lambda request: say(usage=Usage(output_tokens=2000)))
    with open_ledger(tmp_path) as ledger:
        desk_for(model, ledger).ask(ask_for(max_output_tokens=1000))
        assert ledger.spend().total.microusd == 40_000
    assert "call r1/b0/coder/0 cost 40000 micro-USD, more than" in caplog.text


def test_refused_reply_is_recorded_and_paid_like_any_other(tmp_path: Path) -> None:
    refused = say("", content=(), stop="refusal", refusal="cyber: no")
    with open_ledger(tmp_path) as ledger:
        reply = desk_for(PlayedModel(lambda request: refused), ledger).ask(ask_for())
        assert ledger.rows("state, stop, cost_microusd") == [("done", "refusal", 340)]
    assert reply.refusal == "cyber: no"


def test_mistake_of_ours_leaves_no_call_open(tmp_path: Path) -> None:
    def stumble(request: ModelRequest) -> ModelReply:
        raise ZeroDivisionError

    with open_ledger(tmp_path) as ledger:
        with pytest.raises(ZeroDivisionError):
            desk_for(PlayedModel(stumble), ledger).ask(ask_for())
        assert ledger.rows("state, cost_microusd = reserved_microusd") == [("unknown", 1)]


def test_stopped_run_makes_no_call(tmp_path: Path) -> None:
    model, halt = PlayedModel(), Halt()
    halt.stop()
    with open_ledger(tmp_path) as ledger, pytest.raises(Stopped):
        desk_for(model, ledger, halt).ask(ask_for())
    assert model.asked == []


def test_stop_ends_the_wait_for_a_busy_service(tmp_path: Path) -> None:
    halt = Halt()

    def busy_for_an_hour(request: ModelRequest) -> CallFailed:
        halt.stop()
        return CallFailed(kind="time", message="busy", status=429, retry_after_s=1700.0)

    with open_ledger(tmp_path) as ledger:
        with pytest.raises(Stopped):
            desk_for(PlayedModel(busy_for_an_hour), ledger, halt).ask(ask_for())
        assert ledger.rows("state") == [("reserved",)]  # the next process takes it up


class _StoppedInTheWait(Halt):
    """Ctrl-C while a call waits to be made again."""

    def wait(self, seconds: float) -> None:
        self.stop()
        self.check()


def test_call_that_waits_for_a_service_that_is_away_owes_nothing(tmp_path: Path) -> None:
    """Every request was refused: none was sent, so that none can be paid."""
    with open_ledger(tmp_path) as ledger:
        with pytest.raises(Stopped):
            desk_for(after(DOWN), ledger, _StoppedInTheWait()).ask(ask_for())
        assert ledger.spend() == Spend(Amount(), Amount())
        ledger.do(lambda: abandon_open_calls(ledger.store.log.connection))
        assert ledger.rows("state, cost_microusd, attempts") == [("failed", 0, 2)]


def test_call_that_has_waited_is_set_aside_again_before_it_is_sent(tmp_path: Path) -> None:
    open_at_the_second: list[int] = []

    def second(request: ModelRequest) -> ModelReply | CallFailed:
        open_at_the_second.append(ledger.spend().open.microusd)
        return DOWN if len(open_at_the_second) == 1 else say()

    with open_ledger(tmp_path) as ledger:
        desk_for(PlayedModel(second), ledger).ask(ask_for())
        before, after_waiting = open_at_the_second
    assert before == after_waiting > 0


def test_call_that_has_waited_finds_room_in_the_budget_or_does_not(tmp_path: Path) -> None:
    first, second = (Reservation(ask_for(f"r1/b{n}/coder/0"), 1000, 10) for n in (0, 1))
    with open_ledger(tmp_path, Budget(usd=0.0015)) as ledger:
        store = ledger.store
        row = ledger.do(lambda: store.reserve(first))
        assert row is not None
        ledger.do(lambda: store.retry(row, DOWN, 1.0))
        other = ledger.do(lambda: store.reserve(second))
        assert other is not None  # what the first gave back
        assert not ledger.do(lambda: store.renew(row, first))
        ledger.do(lambda: store.settle(other, say(), 900))
        with pytest.raises(BudgetSpent):
            ledger.do(lambda: store.renew(row, first))
