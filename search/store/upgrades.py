"""What brings a run file of an older kopt to the tables of this one, format by format."""

from .tables import BRANCH, EVALUATION, LLM_CALL, OPEN_EVALUATION, ROUND

_EVALUATION_COLUMNS = (
    "id, candidate, level, state, lease_owner, attempts, infra_failures, interruptions, status,"
    " summary, device, sandbox, equivalence, elapsed_s, started_us, finished_us"
)


def _made_anew(table: str, create: str, columns: str) -> tuple[str, ...]:
    """Return what puts the `columns` of a table into one of today's form."""
    return (
        create.replace(f"TABLE {table}", "TABLE made_anew"),
        f"INSERT INTO made_anew ({columns}) SELECT {columns} FROM {table}",
        f"DROP TABLE {table}",
        f"ALTER TABLE made_anew RENAME TO {table}",
    )


# By the format that a file has: what makes the next one of it. Foreign keys are off meanwhile:
# only so can a table be made anew that others refer to (sqlite.org/lang_altertable.html, 7).
UPGRADES: dict[int, tuple[str, ...]] = {
    1: ("ALTER TABLE candidate ADD COLUMN note TEXT NOT NULL DEFAULT ''",),
    2: (
        ROUND,
        "INSERT INTO round (number, kind) SELECT json_extract(data, '$.round'),"
        " CASE WHEN json_extract(data, '$.round') = 0 THEN 'start'"
        " WHEN EXISTS (SELECT 1 FROM candidate WHERE proposer = 'caller'"
        " AND candidate.round = json_extract(data, '$.round')) THEN 'step' ELSE 'sweep' END"
        " FROM event WHERE kind = 'round_started'",
        BRANCH,
        LLM_CALL,
        "ALTER TABLE candidate ADD COLUMN branch TEXT REFERENCES branch (id)",
        "ALTER TABLE candidate ADD COLUMN attempt INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0)",
        "ALTER TABLE lineage ADD COLUMN place INTEGER NOT NULL DEFAULT 0 CHECK (place >= 0)",
        "ALTER TABLE run ADD COLUMN documents_sha TEXT REFERENCES blob (sha)",
        "ALTER TABLE run ADD COLUMN tool_gpu_seconds REAL NOT NULL DEFAULT 0.0"
        " CHECK (tool_gpu_seconds >= 0.0)",
        *_made_anew("evaluation", EVALUATION, _EVALUATION_COLUMNS),
        OPEN_EVALUATION,
    ),
    3: (
        *_made_anew("round", ROUND, "number, kind, plan_sha, reflection_sha"),
        "ALTER TABLE run ADD COLUMN knowledge_sha TEXT REFERENCES blob (sha)",
        "ALTER TABLE candidate ADD COLUMN techniques TEXT NOT NULL DEFAULT '[]'"
        " CHECK (json_valid(techniques))",
        *_made_anew("evaluation", EVALUATION, f"{_EVALUATION_COLUMNS}, gpu_seconds, measured_as"),
        OPEN_EVALUATION,
    ),
}
