"""Write definition.json of packaged problems from their torch_reference.py (docs/generated.md).

    .venv/bin/python benchmarks/definitions.py PROBLEM ...

Needs torch. `tests/tools/pytorch/test_definitions.py` tells when one is stale.
"""

import sys

from kopt.kernels.problem_loader import load_problems
from kopt.tools.pytorch.generated import DEFINITION_FILE
from kopt.tools.pytorch.importing.definition import definition_text, export_definition

for name in sys.argv[1:]:
    problem = load_problems()[name]
    path = problem.folder / DEFINITION_FILE
    path.write_text(definition_text(export_definition(problem)), encoding="utf-8")
    print(path)
