"""`kopt suite`: a folder of problems run as a benchmark, and its score."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from kopt.config.errors import SetupError, ToolError
from kopt.server.exits import ExitCode
from kopt.server.options import device_arch_option, device_option
from kopt.server.same_call import same_call
from kopt.server.session import Session, command_body
from kopt.server.suite_driving import (
    SuiteOptions,
    drive_suite,
    refuse_unknown_group,
    refuse_unknown_kernels,
)
from kopt.server.views.suite_view import suite_run_view, suite_score_view
from kopt.tools.facts.next_command import NextCommand
from kopt.tools.suite.kernelbench import KernelBenchFiles, score_kernelbench
from kopt.tools.suite.results_folder import RESULTS, find_results
from kopt.tools.suite.score import THRESHOLDS
from kopt.tools.suite.speeds import TIMED, Over
from kopt.tools.suite.suite_file import load_suite
from kopt.tools.suite.suite_score import ScoreRequest, SuiteScore, score_suite
from kopt.tools.suite.suite_stage import SuiteRun

EPILOG = """\b
Examples:
  kopt suite run kb
  kopt suite run kb --device cuda:0 --candidates winner
  kopt suite score kb --over compile --html score.html
  kopt suite score --kernelbench eval_results.json --baseline torch.json

\b
A suite is a folder of problems with suite.yaml (docs/suite.md)."""

RUN_EPILOG = """\b
Examples:
  kopt suite run kb
  kopt suite run kb --group level1 --candidates run --device cuda:0
  kopt suite run kb --candidates kernels/
  kopt suite run kb --over eager --device cuda:0

\b
Each task is checked at level full and timed over every baseline of its problem;
on sim times are estimates, and the score has no speedups. A result is kept as
soon as it is there: call it again to go on after Ctrl-C or kill -9. A kernel
that fails is a result, and ends nothing.
Exit codes: 0 every task has a result, valid or not, 1 a task could not be
judged (the reason is shown), 2 wrong usage, 3 this machine lacks something,
130 interrupted."""

SCORE_EPILOG = """\b
Examples:
  kopt suite score kb
  kopt suite score kb --over eager --p 1,1.5,2,5 --html score.html
  kopt suite score kb --set sim-sm_90a-suite --json
  kopt suite score --kernelbench eval_results.json --baseline torch.json --group level1

\b
fast_p is the share of all tasks that are valid and faster than p times the
baseline: by the speedup, as KernelBench counts, and by the lower end of its
interval. Intervals of scores are 95 %, by drawing tasks anew.
Exit codes: 0 scored, 2 wrong usage, 3 a file cannot be written."""


def _thresholds(_: click.Context, __: click.Parameter, text: str) -> tuple[float, ...]:
    """Read `1,1.5,2`.

    Raises:
        click.BadParameter: A part is no speed.
    """
    found: list[float] = []
    for part in text.split(","):
        with suppress(ValueError):
            if 0.0 <= (value := float(part)) < 1000.0:
                found.append(value)
                continue
        raise click.BadParameter(f"{part.strip()!r} is no speedup such as 1.5")
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True)
class ScoreOptions:
    """The options of `kopt suite score`."""

    folder: Path | None
    over: Over
    p: tuple[float, ...]
    group: str | None
    results: Path | None
    set_name: str | None
    html: Path | None
    seed: int
    kernelbench: Path | None
    baseline: Path | None

    @property
    def scoring(self) -> ScoreRequest:
        """What is asked of the score."""
        return ScoreRequest(self.over, self.p, self.seed)


@click.group("suite", epilog=EPILOG)
def command() -> None:
    """Run a folder of problems as a benchmark, and score it as the field does."""


results_option = click.option(
    "--results",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help=f"Folder of the results.  [default: {RESULTS}/ in the suite's]",
)
group_option = click.option("--group", metavar="NAME", help="Only the tasks of this group.")


@command.command("run", epilog=RUN_EPILOG, short_help="Check and time the kernel of each task.")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@device_option
@device_arch_option
@click.option(
    "--level",
    type=click.Choice(["full", "quick"]),
    default="full",
    show_default=True,
    help="The check behind `valid`. quick proves less, and its results are a set of their own.",
)
@click.option(
    "--over",
    type=click.Choice(TIMED),
    multiple=True,
    help="Time over this baseline alone; may be given again. Results are a set of their own."
    "  [default: all that a problem has]",
)
@group_option
@click.option(
    "--candidates",
    metavar="PATH|winner|run",
    help="In place of what suite.yaml names: promoted winners, winners of the newest runs (or of"
    " one, by its id), or a folder of <task>.cu.",
)
@results_option
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    help="Tasks at once.  [default: KOPT_JOBS, 1 on a GPU]",
)
@click.option(
    "--resume/--anew",
    default=True,
    show_default=True,
    help="Whether results are kept that nothing has changed since.",
)
@command_body(SuiteOptions)
def run(session: Session, options: SuiteOptions) -> int:
    """Check and time the kernel of each task of the suite in DIR.

    What is done is kept in DIR/results, one file a task; the same call goes on where it was left.
    """
    refuse_unknown_kernels(options.candidates)
    suite = load_suite(options.folder)
    refuse_unknown_group(suite, options.group)
    found = session.show_growing(
        lambda keep: drive_suite(session, options, suite, keep),
        suite_run_view,
        lambda one: f"{len(one.results)} of {one.planned} tasks",
        lambda one: _score_next(options, one),
    )
    if found is None:
        return ExitCode.INTERRUPTED
    return ExitCode.FELL_SHORT if found.faults else ExitCode.PASSED


@command.command("score", epilog=SCORE_EPILOG, short_help="Score the results of a suite.")
@click.argument(
    "folder", metavar="[DIR]", required=False, type=click.Path(file_okay=False, path_type=Path)
)
@click.option(
    "--over",
    type=click.Choice(["best", "eager", "compile", "compile_max", "reference"]),
    default="best",
    show_default=True,
    help="The baseline: PyTorch's eager, torch.compile, the same with max-autotune, the fastest"
    " library path of each task, or the kernel that its search begins with.",
)
@click.option(
    "--p",
    default=",".join(f"{p:g}" for p in THRESHOLDS),
    show_default=True,
    callback=_thresholds,
    metavar="P,...",
    help="Thresholds of fast_p.",
)
@group_option
@results_option
@click.option("--set", "set_name", metavar="NAME", help="Which set of results, if there are more.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a page there: scores, the curve of fast_p, every task.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the bootstrap.")
@click.option(
    "--kernelbench",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Score KernelBench's own eval_results.json instead of a suite.",
)
@click.option(
    "--baseline",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Its baseline times (results/timing/GPU/NAME.json).  [default: ref_runtime in FILE]",
)
@command_body(ScoreOptions)
def score(session: Session, options: ScoreOptions) -> int:
    """Score the results of the suite in DIR, or of KernelBench's own files.

    ValidRate, fast_p, means and the rest over all tasks, without degenerate and random ones, and
    by group, each with its interval.
    """
    found = _score(options)
    if options.html is not None:
        _write_page(options.html, found)
    session.show(found, suite_score_view(found), _next(options))
    return ExitCode.PASSED


def _score(options: ScoreOptions) -> SuiteScore:
    if (options.folder is None) == (options.kernelbench is None):
        raise ToolError("name a suite's folder, or --kernelbench FILE: one of them")
    if options.kernelbench is not None:
        files = KernelBenchFiles(options.kernelbench, options.baseline, options.group)
        return score_kernelbench(files, options.p, options.seed)
    if options.baseline is not None:
        raise ToolError("--baseline is of --kernelbench: a suite's baselines are --over")
    suite = load_suite(options.folder or Path())
    refuse_unknown_group(suite, options.group)
    folder = find_results(options.results or suite.folder / RESULTS, options.set_name)
    return score_suite(suite.of_group(options.group), folder, options.scoring)


def _score_next(options: SuiteOptions, run: SuiteRun) -> NextCommand:
    """Return the command that scores what was run."""
    words = ["kopt", "suite", "score", str(options.folder), "--set", run.set.name]
    if options.results is not None:
        words += ["--results", str(options.results)]
    if options.group is not None:
        words += ["--group", options.group]
    return NextCommand(tuple(words), "ValidRate, fast_p and the other figures")


def _next(options: ScoreOptions) -> NextCommand | None:
    """Return the command that shows more; None where a page was asked for."""
    if options.html is not None or options.folder is None:
        return None
    why = "every task, and the curve of fast_p"
    return same_call(why, more=("--html", "score.html"))


def _write_page(path: Path, found: SuiteScore) -> None:
    from kopt.search.reports.suite_page import suite_page

    try:
        path.write_text(suite_page(found), "utf-8")
    except OSError as error:
        raise SetupError(f"cannot write {path}: {error.strerror}; choose another --html") from error
