"""The whole of `kopt study` with a model that is played by a script: no key, nothing is paid.

The script carries out the technique that it is told, on four of the shipped kernels; each
technique gains what the simulator's estimate says, which for many is nothing. So the study shows
what memory does to the choice of techniques, and nothing about how good a real model is.
Other arguments go to `kopt study`; a study that was interrupted goes on with its own kernels.

    PYTHONPATH=tests .venv/bin/python benchmarks/demo_study.py --repeats 3
    PYTHONPATH=tests .venv/bin/python benchmarks/demo_study.py --resume STUDY
"""

import os
import sys
from pathlib import Path

from kopt.config.settings import settings_from_environment
from kopt.search.models.model_source import PLAYED_KEY
from kopt.server.cli import main
from support.fake_messages import FakeMessages
from support.played.metered import Metered
from support.played.obedient import obedient_model
from support.reduced_problems import write_reduced

KERNELS = (
    "silu_and_mul_b8xh14336",
    "fused_add_rmsnorm_quant_b8xh8192",
    "merge_state_n128xh64xd128",
    "fused_add_rmsnorm_b8xh4096",
)
SETTINGS = """\
strategy: maic_rl
maic_rl: {trajectories: 6, steps: 2, most_steps: 2, at_once: 1, update_every: 6}
combine_top_k: 0
"""
NOTICE = (
    "The model is played by a script on this machine: it carries out the technique it is told.\n"
    "Times are estimated by the simulator, amounts are what Claude would cost. This shows what\n"
    "memory does to the choice of techniques, not how good a real model is. It takes minutes;\n"
    "after Ctrl-C it goes on with: make demo-study STUDY_FLAGS='--resume STUDY'"
)


def demo(words: list[str]) -> int:
    """Run `kopt study WORDS` over the four kernels and return its exit code."""
    print(NOTICE, flush=True)
    folder = settings_from_environment().home / "demo-study"
    problems = folder / "problems"
    with FakeMessages(Metered(obedient_model)) as fake:
        for name in [name for name in os.environ if name.startswith("ANTHROPIC_")]:
            del os.environ[name]
        os.environ |= {"ANTHROPIC_API_KEY": PLAYED_KEY, "ANTHROPIC_BASE_URL": fake.url}
        asked = [] if "--resume" in words else _new_study(folder, problems)
        return main(["study", *asked, "--problems", str(problems), *words])


def _new_study(folder: Path, problems: Path) -> list[str]:
    """Return what asks for a new study, once its kernels and settings are written."""
    kernels = [write_reduced(kernel, problems) for kernel in KERNELS]
    settings = folder / "study.yaml"
    settings.write_text(SETTINGS, "utf-8")
    named = [word for kernel in kernels for word in ("--kernel", kernel)]
    arms = ["--arm", "full", "--arm", "memory_off", "--target", "2x", "--device", "sim"]
    return [*named, *arms, "--config", str(settings)]


if __name__ == "__main__":
    sys.exit(demo(sys.argv[1:]))
