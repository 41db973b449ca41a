"""The runs that `kopt run --suite` begins: a kernel of each task, with its share of the budget."""

from dataclasses import dataclass, replace
from pathlib import Path

from kopt.config.callbacks import ignore
from kopt.config.device_names import asks_for_simulator
from kopt.kernels.problem_loader import load_problem
from kopt.tools.device_choice import device_name
from kopt.tools.suite.kernel_choice import timed_workloads
from kopt.tools.suite.suite_file import SuiteTask, load_suite

from .session import Session


@dataclass(frozen=True)
class SuiteSearch:
    """A run of a task."""

    kernel: str
    folder: Path
    """The folder that the task's problem was found in."""
    share: float
    """The part of the whole budget that this run may spend, 0 to 1."""

    def session(self, session: Session) -> Session:
        """Return `session` where the task's problem is the user's own."""
        return replace(session, settings=replace(session.settings, problems=self.folder))


def suite_searches(folder: Path, device: str) -> list[SuiteSearch]:
    """Return a run for each task of the suite in `folder`, the heaviest first.

    Args:
        folder: Has suite.yaml.
        device: Where runs are; on sim a shape is searched that it can run.

    Raises:
        ToolError: It is no suite, or a problem of it has mistakes.
    """
    suite = load_suite(folder)
    tasks = [task for task in suite.counted if task.name in suite.problem_folders]
    shares = _shares(tasks)
    on_gpu = not asks_for_simulator(device_name(device, ignore))
    found: list[SuiteSearch] = []
    for task in sorted(tasks, key=lambda one: -shares[one.name]):
        place = suite.problem_folders[task.name]
        problem = load_problem(place)
        workloads = timed_workloads(problem, task, on_gpu=on_gpu)
        share = shares[task.name] / len(workloads)
        found += [SuiteSearch(problem.kernel_id(one), place, share) for one in workloads]
    return found


def _shares(tasks: list[SuiteTask]) -> dict[str, float]:
    """Return each task's share; one without a weight has the mean of the others."""
    given = [task.weight for task in tasks if task.weight is not None]
    usual = sum(given) / len(given) if given else 1.0
    weights = {task.name: usual if task.weight is None else task.weight for task in tasks}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}
