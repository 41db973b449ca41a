"""`kopt kb`: what kopt has learned; shown, compared, exchanged, revoked."""

from kopt.server.lazy_group import LazyCommand, LazyGroup

COMMANDS = {
    "show": LazyCommand("kb_show", "All states, or one in full.", "show"),
    "samples": LazyCommand("kb_show", "What was tried, what came of it.", "samples"),
    "diff": LazyCommand("kb_show", "What changed, or how two bases differ.", "diff"),
    "merge": LazyCommand("kb_exchange", "Several bases as one file.", "merge"),
    "export": LazyCommand("kb_exchange", "The whole base as one file.", "export"),
    "import": LazyCommand("kb_exchange", "Take in what other bases have learned.", "import_"),
    "forget": LazyCommand("kb_exchange", "Revoke a sample, a run or an imported base.", "forget"),
    "path": LazyCommand("kb_show", "Where the base lies.", "path"),
}

EPILOG = """\b
Examples:
  kopt kb show
  kopt kb show dram_saturated
  kopt kb samples --run run-20260101-120000-000
  kopt kb diff --since 12
  kopt kb export --to mine.yaml
  kopt kb merge mine.yaml theirs.yaml -o ours.yaml
  kopt kb import ours.yaml
  kopt kb forget run-20260101-120000-000

\b
Every run learns into the base and is advised by it, unless memory is off. Each
command takes --json. More: docs/knowledge.md."""

command = LazyGroup(
    COMMANDS,
    name="kb",
    help="The knowledge base: which technique gained how much in which state, on which GPU.",
    epilog=EPILOG,
)
