"""`kopt pool`: the evaluators of a Ray cluster."""

from kopt.server.lazy_group import LazyCommand, LazyGroup

COMMANDS = {
    "status": LazyCommand("pool_status", "Evaluators, callers, evaluations a minute.", "status"),
}

EPILOG = """\b
Examples:
  kopt pool status
  kopt pool status --device ray://head:6379 --json

\b
Commands evaluate on a pool with --device ray or --device ray://HOST:PORT.
More: docs/pool.md."""

command = LazyGroup(
    COMMANDS,
    name="pool",
    help="The GPUs of a Ray cluster, which all processes of kopt share that use it.",
    epilog=EPILOG,
)
