"""What follows a result: which command takes the user on, with the words of the call before.

Each works as printed, whatever the result was. What an MCP client is told is in
`protocol/replies/next_steps.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kopt.config.settings import DEFAULT_ARCH
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.check_result import CheckResult
from kopt.kernels.status import Status, Verdict
from kopt.tools.facts.next_command import NextCommand
from kopt.tools.facts.wording import tune_words

from .views.compile_view import CompiledFile

if TYPE_CHECKING:
    from kopt.kernels.promotion_result import PromotionResult
    from kopt.search.step.result import StepResult
    from kopt.tools.export.stage import ExportResult


@dataclass(frozen=True)
class NamedFile:
    """A candidate as the command line named it."""

    path: Path
    kernel: str
    """Its kernel id, which the folder may have told."""
    tune: Mapping[str, int] | None = None
    device: str = "auto"
    arch: str | None = None

    def call(self, command: str, *more: str) -> tuple[str, ...]:
        """Return the words of `kopt COMMAND` for this file."""
        words = ["kopt", command, str(self.path), "--kernel", self.kernel]
        if self.tune:
            words += ["--tune", tune_words(dict(self.tune))]
        if self.arch is not None:
            words += ["--arch", self.arch]
        if self.device != "auto" and command != "compile":
            words += ["--device", self.device]
        return (*words, *more)

    def again(self, command: str, *more: str) -> NextCommand:
        """Return the same command, for the time when the file is fixed."""
        return NextCommand(self.call(command, *more), f"once {self.path.name} is fixed")


def after_show(kernel: str, flag: str) -> tuple[NextCommand, ...]:
    """Return what follows: a candidate to write from, which `flag` of show prints, and its check.

    What comes after that the check says itself.

    Args:
        kernel: The kernel id.
        flag: --example or --skeleton.
    """
    file = NamedFile(Path("mine.cu"), kernel)
    return (
        NextCommand(("kopt", "show", kernel, flag), "to change", into=str(file.path)),
        NextCommand(file.call("check"), "against the fp64 oracle"),
    )


def after_compile(
    files: Sequence[CompiledFile], archs: Sequence[str], tune: Mapping[str, int] | None = None
) -> NextCommand:
    """Return what follows: the first that failed is compiled again, else the first is checked.

    An architecture that was asked for is checked on sim: a GPU that is here may be another.
    """
    failed = [one for one in files if one.result.status is not Status.PASSED]
    first = next(iter(failed), files[0])
    file = NamedFile(Path(first.name), first.result.kernel, tune)
    if tuple(archs) != (DEFAULT_ARCH,):
        file = replace(file, arch=",".join(archs) if failed else archs[0], device="sim")
    if failed:
        return file.again("compile")
    return NextCommand(file.call("check"), "against the fp64 oracle")


def after_profile(file: NamedFile, status: Status) -> NextCommand:
    """Return what follows: a search for a kernel that is limited by less."""
    if status is not Status.PASSED:
        return file.again("profile")
    words = ["kopt", "run", "--kernel", file.kernel, "--start", str(file.path)]
    words += [] if file.arch is None else ["--arch", file.arch]
    words += [] if file.device == "auto" else ["--device", file.device]
    return NextCommand(tuple(words), "a search that starts from it")


def after_check(file: NamedFile, result: CheckResult) -> NextCommand:
    """Return what follows: the full check, then the time."""
    if result.status is Status.UNSUPPORTED_ON_SIM:
        return _on_gpu_alone(file)
    if result.status is not Status.PASSED:
        return file.again("check", *(("--level", "full") if result.level == "full" else ()))
    if result.level == "quick":
        return NextCommand(file.call("check", "--level", "full"), "every workload, hidden inputs")
    return NextCommand(file.call("bench"), "its time")


def _on_gpu_alone(file: NamedFile) -> NextCommand:
    """Return what can be done here with a candidate that the simulator cannot run."""
    why = "it needs a GPU to be checked: kopt check ... --device cuda:0"
    return NextCommand(file.call("compile"), why)


def after_bench(file: NamedFile, result: BenchResult) -> NextCommand:
    """Return what follows: a promotion, a full check, or what limits it."""
    if result.status is Status.UNSUPPORTED_ON_SIM:
        return _on_gpu_alone(file)
    if result.status is not Status.PASSED:
        return NextCommand(file.call("check"), "says where it goes wrong")
    if result.is_unproven:
        return NextCommand(file.call("check", "--level", "full"), "proves that it is right")
    if result.verdict is Verdict.FASTER:
        return NextCommand(file.call("bench", "--promote"), "makes it a winner with a receipt")
    return NextCommand(file.call("profile"), "what limits it")


def after_promotion(file: NamedFile, result: "PromotionResult") -> NextCommand:
    """Return what follows: the winner as code, or what limits the candidate."""
    receipt = next((one.receipt_path for one in result.files if one.action == "written"), None)
    if receipt is not None:
        return NextCommand(("kopt", "export", receipt, "--as", "torch"), "the winner as code")
    return NextCommand(file.call("profile"), "what limits it")


def after_step(result: "StepResult", files: Sequence[Path]) -> NextCommand:
    """Return what the step says comes next, with the files that it was given."""
    step = ("kopt", "step", "--run", result.run)
    names = " and ".join(file.name for file in files)
    match result.next:
        case "sweep":
            return NextCommand(step, f"tries {result.proposer_ideas} ideas of kopt's own")
        case "finish":
            return NextCommand(step, "puts the best to the full check and ends the run")
        case "verify":
            winner = ("kopt", "bench", str(result.winner_path), "--kernel", result.kernel)
            return NextCommand(winner, "the winner's time")
        case _ if not files:
            example = ("kopt", "show", result.kernel, "--example")
            return NextCommand(example, f"to write from; then kopt step --run {result.run} FILE")
        case _:
            done = "fixed" if result.next == "fix" else "changed"
            again = (*step, *(str(file) for file in files))
            return NextCommand(again, f"once {names} {'are' if len(files) > 1 else 'is'} {done}")


def after_export(result: "ExportResult") -> NextCommand:
    """Return what tells how to build, test and use the export."""
    return NextCommand(("cat", f"{result.folder}/README.md"), "how to build, test and use it")
