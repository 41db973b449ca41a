"""A suite of small problems: right, wrong and broken ones, each checked in seconds on sim."""

from pathlib import Path

from support.tiny_problem import BODY, HEADER, ORACLE, PROBLEM_YAML

WRONG_BODY = BODY.replace("* scale;", "* scale + 1.0f;")
_WORKLOADS = """\
  b8xh64: {axes: {B: 8, H: 64}}
  b32xh256: {axes: {B: 32, H: 256}}
"""
_ONE_WORKLOAD = "  b8xh64: {axes: {B: 8, H: 64}}\n"


def write_task(suite: Path, name: str, body: str = BODY) -> Path:
    """Write the problem `name`, of one small workload, into the folder of a suite."""
    folder = suite / name
    folder.mkdir(parents=True)
    text = PROBLEM_YAML.replace("name: scale_rows", f"name: {name}")
    (folder / "problem.yaml").write_text(text.replace(_WORKLOADS, _ONE_WORKLOAD))
    (folder / "oracle.py").write_text(ORACLE)
    (folder / "reference.cu").write_text(HEADER + body)
    return folder


def write_suite(suite: Path, text: str = "name: small\nall: true\n") -> Path:
    """Write suite.yaml into the folder of a suite and return the folder."""
    suite.mkdir(parents=True, exist_ok=True)
    (suite / "suite.yaml").write_text(text)
    return suite
