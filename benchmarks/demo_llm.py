"""The whole of `kopt run` with a model that is played by a script: no key, nothing is paid.

Behind a loopback Messages API the script reads what each agent is asked and answers as a good model
would; everything else is what a run with Claude does: prompts, tools, evaluation on the simulator,
ledger, reports. Other arguments go to `kopt run`.

    PYTHONPATH=tests .venv/bin/python benchmarks/demo_llm.py --kernel silu_and_mul_b8xh14336
"""

import os
import sys

from kopt.search.models.model_source import PLAYED_KEY
from kopt.server.cli import main
from support.fake_messages import FakeMessages
from support.played.good import good_model
from support.played.metered import Metered


def demo(words: list[str]) -> int:
    """Run `kopt run WORDS` and return its exit code."""
    print("The model is played by a script on this machine: amounts are what Claude would cost.")
    with FakeMessages(Metered(good_model)) as fake:
        for name in [name for name in os.environ if name.startswith("ANTHROPIC_")]:
            del os.environ[name]
        os.environ |= {"ANTHROPIC_API_KEY": PLAYED_KEY, "ANTHROPIC_BASE_URL": fake.url}
        return main(["run", "--device", "sim", *words])


if __name__ == "__main__":
    sys.exit(demo(sys.argv[1:]))
