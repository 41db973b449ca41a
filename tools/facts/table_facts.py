"""A table of candidates and tune choices as facts: a line a row, and once what all have alike."""

from kopt.config.gpu_specs import load_gpus
from kopt.kernels.choice_table import ChoiceTable, TableRow
from kopt.kernels.status import Status

from .fitting import Detail, Facts, Listing, given
from .known_facts import known_facts
from .wording import Quoted, file_name, plain_beginning, tune_words

_NAME_CHARACTERS = 80
_WHY_CHARACTERS = 160
_ROWS_SHOWN = 40
QUICK = "each row passed a quick check; benchmark alone decides about one of them"
UNCHECKED = "no value was checked: check_correctness does that"


def table_facts(table: ChoiceTable, detail: Detail) -> Facts:
    """Return the facts of a table, fastest first."""
    passed = [row for row in table.rows if row.status is Status.PASSED]
    same = _same(passed)
    most = len(table.rows) if detail == "full" else _ROWS_SHOWN
    rows = Listing(tuple(_line(row, table, same) for row in passed), most=most)
    failed = tuple(_failure(row, table) for row in table.rows if row.status is not Status.PASSED)
    is_sheet = table.gpu in load_gpus()
    facts: Facts = {
        "status": table.status.value,
        "kernel": table.kernel,
        "device": table.device,
        "gpu": f"{table.gpu} ({table.arch})" if is_sheet else table.gpu,
    }
    facts |= given(baseline=_baseline(table), tie=_tie_words(table))
    facts[_provenance(table)] = given(fastest_first=rows)
    if table.best_known is not None:
        facts["best_known"] = known_facts(table.best_known)
    facts |= given(same_in_all=", ".join(same.values()), failed=Listing(failed, most=8))
    return facts | {"how": QUICK if table.tool == "benchmark" else UNCHECKED}


def _provenance(table: ChoiceTable) -> str:
    return "measured" if any(row.measured_us is not None for row in table.rows) else "estimated"


def _tie_words(table: ChoiceTable) -> str | None:
    """Return how many of the first rows are not told apart; None where one is alone in front."""
    tied = table.tied_with_first
    if not tied:
        return None
    nearer = f"{100 * (table.rows[0].resolution or 0.0):g}%"
    return f"the first {tied + 1} are a tie: estimates nearer than {nearer} are not told apart"


def _baseline(table: ChoiceTable) -> str | None:
    if table.baseline is None or table.baseline_us is None:
        return table.baseline
    return f"{table.baseline}, {table.baseline_us:.4g} us"


def _static(row: TableRow) -> dict[str, str]:
    """Return what is computed of a row, in words, by name."""
    words: dict[str, str] = {}
    if row.registers_per_thread is not None:
        words["registers"] = f"{row.registers_per_thread} registers"
    if row.spill_bytes:
        words["spills"] = f"{row.spill_bytes} bytes spilled"
    if row.blocks is not None:
        words["grid"] = f"{row.blocks} blocks of {row.threads_per_block}"
    if row.theoretical_occupancy is not None:
        words["occupancy"] = f"occupancy {row.theoretical_occupancy:.2g}"
    if row.mostly is not None:
        words["mostly"] = f"mostly {row.mostly}"
    return words


def _same(rows: list[TableRow]) -> dict[str, str]:
    """Return what is equal in two rows and more, in words, by name."""
    if len(rows) < 2:
        return {}
    first, *others = map(_static, rows)
    return {
        name: words
        for name, words in first.items()
        if all(other.get(name) == words for other in others)
    }


def _name(row: TableRow, table: ChoiceTable) -> str:
    """Return what tells a row from the others: its file where there are several, its values."""
    files = {one.file for one in table.rows}
    short = {file: file_name(file) for file in files}
    is_unique = len(set(short.values())) == len(files)
    name = plain_beginning(short[row.file] if is_unique else row.file, _NAME_CHARACTERS)
    tune = plain_beginning(tune_words(row.tune), 2 * _NAME_CHARACTERS)
    words = f"{name} {tune}".strip() if len(files) > 1 else tune
    return words or name or "source"


def _line(row: TableRow, table: ChoiceTable, same: dict[str, str]) -> Quoted:
    time_us = row.estimated_us if row.measured_us is None else row.measured_us
    words = ["no time" if time_us is None else f"{time_us:.4g} us"]
    if row.speedup is not None and row.interval is not None:
        low, high = row.interval
        words.append(f"{row.speedup:.3f}x ({low:.3f} to {high:.3f})")
    if row.verdict is not None and row.measured_us is not None:
        words.append(row.verdict.value)
    words += [text for name, text in _static(row).items() if name not in same]
    default = " (default)" if row.is_default and len(table.rows) > 1 else ""
    return Quoted(f"{_name(row, table)}{default}: {', '.join(words)}")


def _failure(row: TableRow, table: ChoiceTable) -> Quoted:
    why = f", {plain_beginning(row.why, _WHY_CHARACTERS)}" if row.why else ""
    return Quoted(f"{_name(row, table)}: {row.status.value}{why}")
