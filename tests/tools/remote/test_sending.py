"""What the other machine is sent of a problem of the user's own."""

from pathlib import Path

from kopt.config.gpu_specs import load_gpus
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.plan_resolver import resolve_plan
from kopt.kernels.problem import Baseline
from kopt.kernels.problem_loader import load_problem
from kopt.tools.devices.device import Arrays, Program
from kopt.tools.remote.answers import DoneAnswer, FarAnswer
from kopt.tools.remote.calls import Call, StoreFolderCall
from kopt.tools.remote.sending import KernelSender, files_among
from support.tiny_problem import write_tiny_problem


def test_the_oracle_and_hidden_files_stay(tmp_path: Path) -> None:
    folder = write_tiny_problem(tmp_path)
    for name in ("baseline.py", "data/weights.bin", ".env", ".git/config", "__pycache__/x.pyc"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
    problem = load_problem(folder)
    problem = problem.model_copy(
        update={"baselines": (Baseline(name="eager", entry="eager", layout="row_major"),)}
    )
    case = Case(problem, problem.workloads[0], read_candidate(folder / "reference.cu"))
    plan = resolve_plan(case, load_gpus()["H100"]).plan
    assert plan is not None
    stored: list[set[str]] = []

    def ask(call: Call, arrays: Arrays) -> tuple[FarAnswer, Arrays]:
        if isinstance(call, StoreFolderCall):
            stored.append(set(files_among(arrays)))
        return DoneAnswer(is_there=False), {}

    KernelSender(ask).program(Program(case.candidate, problem, plan))
    assert stored == [{"baseline.py", "data/weights.bin", "problem.yaml", "reference.cu"}]
