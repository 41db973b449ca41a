"""The `kopt` command: its sub-commands, and how every ending becomes an exit code.

The outermost frame of the command line. It imports no stage: sub-commands are loaded when called.
"""

import json
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

import click

from kopt import __version__
from kopt.config.settings import COMPLETION_VARIABLE, completion_request

from .exits import CommandFailure, ExitCode, failure_of
from .lazy_group import LazyCommand, LazyGroup
from .starting import announce, wipe

COMMANDS = {
    "list": LazyCommand("list_kernels", "The kernels that kopt knows, with their time floors."),
    "show": LazyCommand(
        "show_kernel",
        "One kernel: what it computes, its bytes, how to write one.",
    ),
    "compile": LazyCommand("compile_files", "Compile candidates; compare their resources."),
    "check": LazyCommand("check_file", "Check a candidate against the fp64 oracle."),
    "bench": LazyCommand("bench_file", "Time a candidate against the library's kernel."),
    "verify": LazyCommand("verify_receipt", "Measure a promoted winner again, from its receipt."),
    "review": LazyCommand("review_file", "Whether a kernel is as fast as somebody says."),
    "new": LazyCommand("new", "A PyTorch module or function as a problem, with a first kernel."),
    "import": LazyCommand("import_tasks", "A benchmark's tasks as a suite: KernelBench, Trace ..."),
    "split": LazyCommand("split", "An imported network as a suite of sub-problems with weights."),
    "stitch": LazyCommand("stitch", "Kernels of a network's parts as one candidate for it."),
    "export": LazyCommand("export", "A winner as ordinary code: CUDA, torch, TVM-FFI, Trace."),
    "profile": LazyCommand("profile_file", "What limits a candidate: bytes, time, counters."),
    "run": LazyCommand("run_kernel", "Search for a faster kernel."),
    "step": LazyCommand("step", "One round of a search, with your candidates or kopt's."),
    "runs": LazyCommand("runs", "Earlier runs: show, report, export, remove."),
    "view": LazyCommand("view_runs", "Runs as live pages in a browser on this machine."),
    "study": LazyCommand("study", "Compare ways to search on a set of kernels."),
    "pool": LazyCommand("pool", "The GPUs of a Ray cluster: who holds them, how many a minute."),
    "suite": LazyCommand("suite", "A folder of problems as a benchmark: run it, score it."),
    "kb": LazyCommand("kb", "What earlier runs have learned: techniques, states, gains."),
    "docs": LazyCommand("docs", "Search production kernels, headers, techniques, the manual."),
    "serve": LazyCommand("serve", "Serve kopt's tools to an MCP client."),
    "setup": LazyCommand("setup", "Enter kopt in Claude Code, Codex, VS Code and others."),
    "selftest": LazyCommand("selftest", "Whether every false candidate is caught on this machine."),
    "gpu": LazyCommand("gpu", "A GPU's worker processes, kept between calls: start, status, stop."),
    "cache": LazyCommand("cache", "What is kept to save time: sizes, limits, clearing."),
    "doctor": LazyCommand("doctor", "What this machine has, and what it lacks."),
    "help": LazyCommand("help", "The help of kopt, or of one command."),
    "completion": LazyCommand("completion", "Make bash, zsh or fish complete kopt's commands."),
}

OUTPUT_HINT = "What stdout goes to cannot be written: send it elsewhere."

EPILOG = """\b
Examples:
  kopt list
  kopt show add_rmsnorm_fp4quant_b128xh2048
  kopt compile mine.cu --kernel add_rmsnorm_fp4quant_b128xh2048 --arch sm_100a,sm_90a
  kopt check mine.cu --kernel add_rmsnorm_fp4quant_b128xh2048
  kopt bench mine.cu --kernel add_rmsnorm_fp4quant_b128xh2048
  kopt review theirs.cu --claim 1.7x --kernel add_rmsnorm_fp4quant_b128xh2048
  kopt profile mine.cu --kernel add_rmsnorm_fp4quant_b128xh2048
  kopt run --kernel add_rmsnorm_fp4quant_b128xh2048
  kopt step --kernel add_rmsnorm_fp4quant_b128xh2048 mine.cu

\b
Exit codes: 0 passed, 1 the candidate fell short, 2 wrong usage, 3 this machine
lacks something, 70 a bug in kopt, 130 interrupted.
Every command that has a result takes --json: one JSON document on stdout.
State lives under KOPT_HOME (default ~/.kopt). KOPT_PROBLEMS, KOPT_JOBS,
KOPT_SANDBOX, KOPT_GPU_IDLE_S, KOPT_RUN and KOPT_WITHOUT_SOURCES are read too, and KOPT_NVCC,
KOPT_CXX, KOPT_NCU and CUDA_HOME, which name tools that are not found by
themselves. With PINECONE_API_KEY set, docs search asks Pinecone too: its index
PINECONE_INDEX_NAME, at PINECONE_INDEX_HOST if known. With ANTHROPIC_API_KEY or
ANTHROPIC_AUTH_TOKEN set, run asks Claude, at ANTHROPIC_BASE_URL if set."""

group = click.version_option(__version__, message="kopt %(version)s")(
    LazyGroup(
        COMMANDS,
        name="kopt",
        help="Make CUDA kernels faster and prove it: compile, check against an fp64 oracle, time "
        "against FlashInfer, search. Needs a GPU to time, and none for the rest.",
        epilog=EPILOG,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `kopt` with `arguments` (default: the process's) and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _open_missing_streams()
    if asked := completion_request():
        from click.shell_completion import shell_complete

        return shell_complete(group, {}, "kopt", COMPLETION_VARIABLE, asked)
    announce(words)
    try:
        code = _invoke(words)
        wipe()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _discard_stdout()
        return ExitCode.BROKEN_PIPE
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return ExitCode.USAGE
    except (Exception, KeyboardInterrupt) as error:  # the outermost frame of the command line
        wipe()
        failure = failure_of(error, _command_of(words))
        if _is_of_output(error):
            failure = replace(failure, hint=OUTPUT_HINT)
            if "--json" not in words:  # else the failure is tried there first
                _discard_stdout()
        if failure.code is ExitCode.BUG:
            traceback.print_exc()
        _report(failure, as_json="--json" in words)
        if failure.code is ExitCode.INTERRUPTED and arguments is None:
            _leave_at_once(failure.code)
        return failure.code


def _invoke(words: list[str]) -> int:
    """Carry out the command; not by `group.main`, which ends a broken pipe with 1."""
    try:
        with group.make_context("kopt", words) as context:
            return int(group.invoke(context) or 0)
    except click.exceptions.Exit as ending:  # --help and --version
        return ending.exit_code


def _is_of_output(error: BaseException) -> bool:
    """Return whether what failed is a write to stdout or stderr, not to a file of kopt's."""
    if not isinstance(error, OSError) or error.filename is not None:
        return False
    frames = traceback.walk_tb(error.__traceback__)
    last = [frame.f_globals.get("__name__") for frame, _line in frames][-1]
    return last in ("click.utils", "rich.console", __name__)


def _command_of(words: Sequence[str]) -> str:
    """Return `kopt run` for `run --device`; `kopt` where no command was named."""
    return f"kopt {words[0]}" if words and words[0] in COMMANDS else "kopt"


def _open_missing_streams() -> None:
    """Give a process that was started without stdout or stderr one that swallows everything.

    Else the next file that is opened would get their numbers, and be written to.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))


def _report(failure: CommandFailure, as_json: bool) -> None:
    """Write the failure: one line on stderr, or with --json one document on stdout."""
    if as_json:
        try:
            click.echo(json.dumps(failure.document()))
            sys.stdout.flush()
            return
        except OSError:  # stdout itself is what failed: say so on stderr
            _discard_stdout()
    click.echo(f"kopt: {failure.message}", err=True)
    if failure.hint:
        click.echo(failure.hint, err=True)


def _leave_at_once(code: int) -> NoReturn:
    """End the process without waiting for its threads.

    After Ctrl-C they may still wait for a compiler. What is worth keeping is committed already, and
    the sandbox ends its children with this process.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _discard_stdout() -> None:
    """Point stdout at /dev/null, so that the interpreter's last flush does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
