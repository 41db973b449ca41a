"""The pools of a Ray cluster as text."""

from rich.text import Text

from kopt.config.counted import counted
from kopt.kernels.pool_status import PoolEvaluator, PoolStatus
from kopt.tools.remote.answers import PoolStatusAnswer

from .tables import NOTHING, Cell, View, grid

_STYLES = {"unfit": "bold red", "restarting": "yellow", "starting": "yellow"}


def pool_view(found: PoolStatusAnswer) -> View:
    """Yield the evaluators and the callers of each pool."""
    if not found.pools:
        yield Text(
            "No pool is in this cluster: one begins with the first command that evaluates on it,"
            " such as kopt run --device ray://HOST:PORT"
        )
    for pool in found.pools:
        yield from _one(pool)


def _one(pool: PoolStatus) -> View:
    at_work = sum(one.state == "busy" for one in pool.evaluators)
    waiting = sum(one.waits for one in pool.callers)
    yield Text(
        f"{pool.version}: {counted(len(pool.evaluators), 'evaluator')}, {at_work} at work,"
        f" {waiting} calls wait; {pool.evaluations_a_minute:.1f} evaluations and"
        f" {pool.calls_a_minute:.1f} calls a minute"
    )
    if pool.evaluators:
        table = grid("host", "evaluator", "state", "calls#", "holder or reason")
        for one in pool.evaluators:
            state = Text(one.state, style=_STYLES.get(one.state, ""))
            table.add_row(one.host, _what(one), state, f"{one.calls:,}", one.detail or NOTHING)
        yield table
    if pool.callers:
        table = grid("caller", "holds#", "waits#", "calls#", "evaluations#")
        for caller in pool.callers:
            numbers = (caller.holds, caller.waits, caller.calls, caller.evaluations)
            table.add_row(caller.name, *(f"{number:,}" for number in numbers))
        yield table


def _what(one: PoolEvaluator) -> Cell:
    if one.kind == "sim":
        return "simulator"
    return f"{one.model} ({one.gpu})" if one.model else "GPU"
