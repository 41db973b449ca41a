"""`kopt docs`: search the documents, read one, build the library of production code."""

from kopt.server.lazy_group import LazyCommand, LazyGroup

COMMANDS = {
    "search": LazyCommand("docs_search", "Search the documents."),
    "show": LazyCommand("docs_show", "One document in full."),
    "sources": LazyCommand("docs_sources", "What is searched, and what could be."),
    "build": LazyCommand(
        "docs_build",
        "Get and index FlashInfer, vLLM, SGLang, CUTLASS and more.",
    ),
    "push": LazyCommand("docs_push", "Upload the library to Pinecone."),
}

EPILOG = """\b
Examples:
  kopt docs search "cp.async pipeline"
  kopt docs search data_race --k 1
  kopt docs build
  kopt docs search "fused add rmsnorm" --source flashinfer,vllm
  kopt docs show "headers:kernels/common/cp_async.cuh#9"
  kopt docs sources

\b
Each takes --json, and --problems for your own problems. More: docs/search.md."""

command = LazyGroup(
    COMMANDS,
    name="docs",
    help="Search production kernels, headers, reference kernels, winners, techniques, the manual.",
    epilog=EPILOG,
)
