"""The tables of a run file as SQL. `schema.py` makes them and brings old files there.

Ids are INTEGER or TEXT keys, `*_us` are Unix microseconds, `*_microusd` millionths of a dollar,
`*_sha` point to `blob`, JSON is TEXT that must be valid, closed sets are CHECKs, and every table is
STRICT. One file holds one run.
"""

from kopt.kernels.status import Provenance, Status


def _one_of(column: str, values: type[Status] | type[Provenance]) -> str:
    return f"{column} IN ({', '.join(repr(value.value) for value in values)})"


EVALUATION = f"""CREATE TABLE evaluation (
        id INTEGER PRIMARY KEY,
        candidate INTEGER NOT NULL REFERENCES candidate (seq),
        level TEXT NOT NULL CHECK (level IN ('quick', 'full', 'tie', 'again')),
        state TEXT NOT NULL CHECK (state IN ('queued', 'leased', 'done')),
        lease_owner TEXT,
        attempts INTEGER NOT NULL DEFAULT 0,
        infra_failures INTEGER NOT NULL DEFAULT 0,
        interruptions INTEGER NOT NULL DEFAULT 0,
        status TEXT CHECK ({_one_of("status", Status)}),
        summary TEXT,
        device TEXT,
        sandbox TEXT,
        equivalence TEXT,
        elapsed_s REAL,
        gpu_seconds REAL,
        measured_as INTEGER REFERENCES candidate (seq),
        started_us INTEGER,
        finished_us INTEGER,
        UNIQUE (candidate, level),
        CHECK ((state = 'leased') = (lease_owner IS NOT NULL)),
        CHECK ((state = 'done') = (status IS NOT NULL)),
        CHECK ((state = 'done') = (summary IS NOT NULL AND device IS NOT NULL
            AND elapsed_s IS NOT NULL AND finished_us IS NOT NULL))
    ) STRICT"""
OPEN_EVALUATION = "CREATE INDEX open_evaluation ON evaluation (state) WHERE state <> 'done'"

ROUND = """CREATE TABLE round (
        number INTEGER PRIMARY KEY CHECK (number >= 0),
        kind TEXT NOT NULL
            CHECK (kind IN ('start', 'agents', 'rollouts', 'generated', 'sweep', 'step', 'combine',
                'tune')),
        plan_sha TEXT REFERENCES blob (sha),
        reflection_sha TEXT REFERENCES blob (sha),
        samples_sha TEXT REFERENCES blob (sha),
        update_sha TEXT REFERENCES blob (sha)
    ) STRICT"""
BRANCH = """CREATE TABLE branch (
        id TEXT PRIMARY KEY,
        round INTEGER NOT NULL REFERENCES round (number),
        ordinal INTEGER NOT NULL CHECK (ordinal >= 0),
        slot TEXT NOT NULL,
        lineage TEXT NOT NULL,
        parents TEXT NOT NULL CHECK (json_valid(parents)),
        hypothesis TEXT NOT NULL CHECK (json_valid(hypothesis)),
        state TEXT NOT NULL CHECK (state IN ('open', 'delivered', 'failed')),
        candidate INTEGER REFERENCES candidate (seq),
        why TEXT,
        UNIQUE (round, ordinal),
        CHECK (state <> 'delivered' OR candidate IS NOT NULL),
        CHECK ((state = 'failed') = (why IS NOT NULL))
    ) STRICT"""
LLM_CALL = """CREATE TABLE llm_call (
        id TEXT PRIMARY KEY,
        role TEXT NOT NULL,
        model TEXT NOT NULL,
        round INTEGER NOT NULL,
        branch TEXT,
        state TEXT NOT NULL CHECK (state IN ('reserved', 'done', 'failed', 'unknown')),
        request_sha TEXT NOT NULL REFERENCES blob (sha),
        response_sha TEXT REFERENCES blob (sha),
        reserved_microusd INTEGER NOT NULL CHECK (reserved_microusd >= 0),
        reserved_tokens INTEGER NOT NULL CHECK (reserved_tokens >= 0),
        cost_microusd INTEGER CHECK (cost_microusd >= 0),
        input_tokens INTEGER,
        cache_write_tokens INTEGER,
        cache_read_tokens INTEGER,
        output_tokens INTEGER,
        stop TEXT,
        why TEXT,
        attempts INTEGER NOT NULL DEFAULT 0,
        latency_s REAL,
        started_us INTEGER NOT NULL,
        finished_us INTEGER,
        CHECK (state <> 'done' OR response_sha IS NOT NULL)
    ) STRICT"""

CREATE = (
    """CREATE TABLE run (
        id TEXT PRIMARY KEY,
        kernel TEXT NOT NULL,
        settings TEXT NOT NULL CHECK (json_valid(settings)),
        status TEXT NOT NULL
            CHECK (status IN ('running', 'paused', 'done', 'failed', 'budget')),
        round INTEGER NOT NULL CHECK (round >= -1),
        round_open INTEGER NOT NULL CHECK (round_open IN (0, 1)),
        beam TEXT NOT NULL CHECK (json_valid(beam)),
        stop_reason TEXT,
        stop_detail TEXT,
        winner INTEGER REFERENCES candidate (seq),
        spent_s REAL NOT NULL CHECK (spent_s >= 0.0),
        kopt_version TEXT NOT NULL,
        created_us INTEGER NOT NULL,
        finished_us INTEGER,
        documents_sha TEXT REFERENCES blob (sha),
        knowledge_sha TEXT REFERENCES blob (sha),
        tool_gpu_seconds REAL NOT NULL DEFAULT 0.0 CHECK (tool_gpu_seconds >= 0.0),
        CHECK ((status IN ('done', 'failed', 'budget')) = (finished_us IS NOT NULL)),
        CHECK (winner IS NULL OR status IN ('done', 'budget'))
    ) STRICT""",
    """CREATE TABLE blob (
        sha TEXT PRIMARY KEY CHECK (length(sha) = 64),
        size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
        kind TEXT NOT NULL,
        created_us INTEGER NOT NULL
    ) STRICT""",
    ROUND,
    BRANCH,
    LLM_CALL,
    """CREATE TABLE candidate (
        seq INTEGER PRIMARY KEY,
        round INTEGER NOT NULL CHECK (round >= 0),
        source_sha TEXT NOT NULL REFERENCES blob (sha),
        source_name TEXT NOT NULL,
        tune TEXT NOT NULL CHECK (json_valid(tune)),
        family TEXT NOT NULL,
        proposer TEXT NOT NULL,
        created_us INTEGER NOT NULL,
        note TEXT NOT NULL DEFAULT '',
        branch TEXT REFERENCES branch (id),
        attempt INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0),
        techniques TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(techniques)),
        UNIQUE (source_sha, tune)
    ) STRICT""",
    """CREATE TABLE lineage (
        child INTEGER NOT NULL REFERENCES candidate (seq),
        parent INTEGER NOT NULL REFERENCES candidate (seq),
        kind TEXT NOT NULL
            CHECK (kind IN ('tune', 'refine', 'expand', 'cross', 'fix', 'combine')),
        place INTEGER NOT NULL DEFAULT 0 CHECK (place >= 0),
        PRIMARY KEY (child, parent, kind),
        CHECK (parent < child)
    ) STRICT, WITHOUT ROWID""",
    EVALUATION,
    OPEN_EVALUATION,
    """CREATE TABLE evaluation_artifact (
        evaluation INTEGER NOT NULL REFERENCES evaluation (id),
        kind TEXT NOT NULL,
        sha TEXT NOT NULL REFERENCES blob (sha),
        PRIMARY KEY (evaluation, kind)
    ) STRICT, WITHOUT ROWID""",
    f"""CREATE TABLE measurement (
        evaluation INTEGER NOT NULL REFERENCES evaluation (id),
        workload TEXT NOT NULL,
        metric TEXT NOT NULL,
        unit TEXT NOT NULL,
        provenance TEXT NOT NULL CHECK ({_one_of("provenance", Provenance)}),
        value REAL,
        PRIMARY KEY (evaluation, workload, metric),
        CHECK ((provenance = 'unavailable') = (value IS NULL))
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE event (
        seq INTEGER PRIMARY KEY,
        at_us INTEGER NOT NULL,
        kind TEXT NOT NULL,
        data TEXT NOT NULL CHECK (json_valid(data))
    ) STRICT""",
    """CREATE TRIGGER event_gapless BEFORE INSERT ON event
        WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM event)
        BEGIN SELECT raise(ABORT, 'event.seq must be gapless'); END""",
    """CREATE TRIGGER event_no_update BEFORE UPDATE ON event
        BEGIN SELECT raise(ABORT, 'events are append-only'); END""",
    """CREATE TRIGGER event_no_delete BEFORE DELETE ON event
        BEGIN SELECT raise(ABORT, 'events are append-only'); END""",
)


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
    4: _made_anew(
        "round", ROUND, "number, kind, plan_sha, reflection_sha, samples_sha, update_sha"
    ),
}
