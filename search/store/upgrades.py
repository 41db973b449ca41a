"""What brings a run file of an older kopt to the tables of this one, format by format."""

from .tables import BRANCH, EVALUATION, LLM_CALL, OPEN_EVALUATION, ROUND

_EVALUATION_COLUMNS = (
    "id, candidate, level, state, lease_owner, attempts, infra_failures, interruptions, status,"
    " summary, device, sandbox, equivalence, elapsed_s, started_us, finished_us"
)

# By the format that a file has: what makes the next one of it. Foreign keys are off meanwhile:
# only so can a table be made anew that others refer to (sqlite.org/lang_altertable.html, 7).
UPGRADES: dict[int, tuple[str, ...]] = {
    1: ("ALTER TABLE candidate ADD COLUMN note TEXT NOT NULL DEFAULT ''",),
    2: (
        ROUND,
        "INSERT INTO round SELECT json_extract(data, '$.round'),"
        " CASE WHEN json_extract(data, '$.round') = 0 THEN 'start'"
        " WHEN EXISTS (SELECT 1 FROM candidate WHERE proposer = 'caller'"
        " AND candidate.round = json_extract(data, '$.round')) THEN 'step' ELSE 'sweep' END,"
        " NULL, NULL FROM event WHERE kind = 'round_started'",
        BRANCH,
        LLM_CALL,
        "ALTER TABLE candidate ADD COLUMN branch TEXT REFERENCES branch (id)",
        "ALTER TABLE candidate ADD COLUMN attempt INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0)",
        "ALTER TABLE lineage ADD COLUMN place INTEGER NOT NULL DEFAULT 0 CHECK (place >= 0)",
        "ALTER TABLE run ADD COLUMN documents_sha TEXT REFERENCES blob (sha)",
        "ALTER TABLE run ADD COLUMN tool_gpu_seconds REAL NOT NULL DEFAULT 0.0"
        " CHECK (tool_gpu_seconds >= 0.0)",
        EVALUATION.replace("TABLE evaluation", "TABLE evaluation_3"),
        f"INSERT INTO evaluation_3 ({_EVALUATION_COLUMNS})"
        f" SELECT {_EVALUATION_COLUMNS} FROM evaluation",
        "DROP TABLE evaluation",
        "ALTER TABLE evaluation_3 RENAME TO evaluation",
        OPEN_EVALUATION,
    ),
}
