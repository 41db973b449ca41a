"""A run as files: `report.md` and `report.html` in its folder, JSON lines for analysis."""

import json
from collections.abc import Iterator
from pathlib import Path

from kopt.config.errors import SetupError
from kopt.config.files import write_atomically
from kopt.config.settings import Settings
from kopt.search.advice.retrieval_log import read_retrievals
from kopt.search.store.run_reader import RunReader

from .contents import read_contents
from .markdown import render_markdown
from .page import render_page


def write_reports(reader: RunReader, folder: Path, settings: Settings) -> tuple[Path, Path]:
    """Write both files of the run in `folder`, over older ones; return page and Markdown.

    Raises:
        InfraError: A source of the run is missing or damaged.
        SetupError: The folder cannot be written.
    """
    contents = read_contents(reader, folder, settings)
    page, markdown = folder / "report.html", folder / "report.md"
    for path, text in ((page, render_page(contents)), (markdown, render_markdown(contents))):
        try:
            write_atomically(path, text.encode())
        except OSError as error:
            raise SetupError(f"cannot write {path}: {error.strerror}") from error
    return page, markdown


_TABLES = (
    *("round", "branch", "llm_call", "candidate", "lineage"),
    *("evaluation", "measurement", "evaluation_artifact", "blob"),
)


def export_lines(reader: RunReader, folder: Path) -> Iterator[str]:
    """Yield one JSON object per line: the run, sources, tables, samples, events and retrievals.

    `type` says which; the first line has the `schema` of the export.
    """
    run = reader.state().model_dump(mode="json")
    yield json.dumps({"type": "run", "schema": "kopt.run-export/1", **run})
    sources = {member.source_sha: member.source for member in reader.members()}
    for sha, source in sources.items():
        yield json.dumps({"type": "source", "sha": sha, "source": source})
    for table in _TABLES:
        for row in reader.table(table):
            if table == "candidate":
                row["tune"] = json.loads(row["tune"])
                row["techniques"] = json.loads(row.get("techniques", "[]"))
            yield json.dumps({"type": table, **row})
    for sample in reader.samples():
        yield json.dumps({"type": "sample", **sample.model_dump(mode="json")})
    for event in reader.events():
        yield json.dumps({"type": "event", **event.model_dump(mode="json")})
    for retrieval in read_retrievals(folder):
        yield json.dumps({"type": "retrieval", **retrieval.model_dump(mode="json", by_alias=True)})
