"""Print what becomes of networks that are split, stitched and checked as wholes on the simulator.

    PYTHONPATH=tests .venv/bin/python benchmarks/network_parts.py [--network resnet] [--folder DIR]

Each is imported, split at its blocks, and stitched three times: of the parts' first kernels, with
other tune values in the heaviest part, and with a fault planted there, which the check must find.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory
from typing import Any

from markdown_tables import grid

from support.network_sources import RESNET, TRANSFORMER


@dataclass(frozen=True)
class Network:
    """A source, and how it is imported."""

    source: str
    options: tuple[str, ...]


NETWORKS = {
    "transformer": Network(TRANSFORMER, ()),
    "resnet": Network(
        RESNET,
        (
            *("--mode", "eval", "--small"),
            "batch=2,size=32,width=4,width2=4,width3=4,width4=4,classes=7",
        ),
    ),
}


@dataclass(frozen=True)
class Call:
    """A call of kopt that ended."""

    document: dict[str, Any]
    cpu_s: float


def kopt(*words: object) -> Call:
    """Return what `kopt WORDS --json` says, and the processor time that it took."""
    before = getrusage(RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "kopt", *map(str, words), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    after = getrusage(RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Call(json.loads(done.stdout), cpu_s)


def rows_of(name: str, network: Network, folder: Path) -> list[list[str]]:
    """Return a row for each stitched candidate of a network."""
    source, parts = folder / f"{name}.py", folder / f"{name}_parts"
    source.write_text(network.source, "utf-8")
    new = kopt("new", source, "-o", folder / "problems", *network.options)
    split = kopt("split", folder / "problems" / name, "-o", parts)
    heaviest = next(one["name"] for one in split.document["parts"] if not one["fault"])
    first = (parts / heaviest / "reference.cu").read_text("utf-8")
    kinds = {
        "first kernels": first,
        "other tune values": re.sub(r"\[(\d+), (\d+)", r"[\2, \1", first),
        "a fault": first.replace("+=", "-=", 1),
    }
    rows: list[list[str]] = []
    for kind, text in kinds.items():
        mine, whole = folder / "mine.cu", folder / f"{name}.cu"
        mine.write_text(text, "utf-8")
        made = kopt("stitch", parts, "--use", f"{heaviest}={mine}", "-o", whole)
        where = ("--problems", parts / "whole", "--device", "sim")
        check = kopt("check", whole, "--kernel", made.document["kernels"][0], *where)
        counts = f"{len(split.document['parts'])} in {len(split.document['steps'])}"
        times = [f"{one.cpu_s:.0f}" for one in (new, split, check)]
        launches = str(made.document["launches"])
        rows.append([name, counts, launches, kind, check.document["status"], *times])
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Networks split, stitched and checked.")
    parser.add_argument("--network", choices=NETWORKS, help="only this one")
    parser.add_argument("--folder", type=Path, help="keep what is written there")
    asked = parser.parse_args(arguments)
    chosen = {n: one for n, one in NETWORKS.items() if asked.network in (None, n)}
    heads = [*("network", "parts in regions", "launches", "stitched of", "check of the whole")]
    heads += ["new, CPU s", "split, CPU s", "check, CPU s"]
    with TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        rows = [row for name, one in chosen.items() for row in rows_of(name, one, folder)]
    print(grid(heads, rows, heads[:5]))


if __name__ == "__main__":
    main()
