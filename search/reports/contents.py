"""All that the pages of one run are made of: its report, its sources, its roofline.

Reads the run's store and its problem; what can no longer be found is left out and said so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kopt.config.device_names import sheet_of
from kopt.config.errors import KoptError
from kopt.config.gpu_specs import GpuSpec, load_gpus
from kopt.config.settings import Settings
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.profile_result import ProfileResult
from kopt.kernels.roofline import ByteModel, Roofline, roofline, workload_bytes
from kopt.search.records.members import Member
from kopt.search.store.run_reader import RunReader
from kopt.tools.facts.document_words import document_words
from kopt.tools.facts.profile_facts import profile_facts

from .run_report import RunReport, report_run


@dataclass(frozen=True)
class Roof:
    """The work of the run's workload, and the roofline of its GPU above it."""

    model: ByteModel
    line: Roofline


@dataclass(frozen=True)
class Contents:
    """What the pages show."""

    report: RunReport
    start_source: str
    sources: tuple[str, ...]
    """The source of each candidate, by `seq`."""
    profiles: Mapping[int, str]
    """What limits the candidates that were profiled, as text, by `seq`."""
    winner_source: str | None
    """With the winning tune values as defaults; None without a winner."""
    roof: Roof | None
    """The roofline; None if the problem or a data sheet of the GPU is not there."""
    roof_missing: str
    """Why there is none, in words; empty if there is one."""


def read_contents(reader: RunReader, folder: Path, settings: Settings) -> Contents:
    """Return what the pages of the run in `folder` show.

    Raises:
        InfraError: A source of the run is missing or damaged.
    """
    report, members = report_run(reader, folder), reader.members()
    roof, missing = _roof(report, settings)
    winner = None if report.winner_path is None else Path(report.winner_path)
    return Contents(
        report=report,
        start_source=reader.source(reader.state().settings.start_sha),
        sources=tuple(member.source for member in members),
        profiles=_profiles(reader, members),
        winner_source=winner.read_text("utf-8") if winner and winner.is_file() else None,
        roof=roof,
        roof_missing=missing,
    )


def _profiles(reader: RunReader, members: Sequence[Member]) -> Mapping[int, str]:
    """Return the profiles that can still be read."""
    found: dict[int, str] = {}
    for member in members:
        sha = None if member.quick is None else member.quick.artifacts.get("profile")
        profile = reader.readable(sha, ProfileResult)
        if profile is not None:
            found[member.seq] = document_words(profile_facts(profile, "concise"))
    return found


def _roof(report: RunReport, settings: Settings) -> tuple[Roof | None, str]:
    try:
        own = settings.problems or (Path(report.problems) if report.problems else None)
        problem, workload = find_kernel(report.kernel, own)
        gpu = _sheet(report)
    except KoptError as error:
        return None, str(error)
    if gpu is None:
        return None, f"no data sheet describes {report.gpu.name if report.gpu else report.arch}"
    model = workload_bytes(problem, workload)
    return Roof(model, roofline(model, gpu)), ""


def _sheet(report: RunReport) -> GpuSpec | None:
    """Return the data sheet of the GPU: of the one measured on, else of the target."""
    if report.gpu is None:
        return sheet_of(report.device, report.arch)
    fitting = (
        sheet
        for sheet in load_gpus().values()
        if sheet.describes(report.gpu.name) and sheet.sm_count == report.gpu.sm_count
    )
    return next(fitting, None)
