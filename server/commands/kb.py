"""`kopt kb`: what kopt has learned; shown, compared, exchanged, revoked."""

from kopt.server.lazy_group import LazyCommand, LazyGroup

COMMANDS = {
    "show": LazyCommand("kb_show", "All states, or one in full."),
    "samples": LazyCommand("kb_samples", "What was tried, what came of it."),
    "diff": LazyCommand("kb_diff", "What changed, or how two bases differ."),
    "merge": LazyCommand("kb_merge", "Several bases as one file."),
    "export": LazyCommand("kb_export", "The whole base as one file."),
    "import": LazyCommand("kb_import", "Take in what other bases have learned."),
    "forget": LazyCommand("kb_forget", "Revoke a sample, a run or an imported base."),
    "path": LazyCommand("kb_path", "Where the base lies."),
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
