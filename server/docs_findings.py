"""What `kopt doctor` says about the document search. Nothing of it is needed, nothing is asked."""

import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from kopt.config.settings import Settings
from kopt.server.views.docs_words import MB
from kopt.server.views.doctor_view import Finding
from kopt.tools.docs.indexing.index_meta import built_sources, library_index_path

EXTRA = ("tree-sitter", "tree-sitter-cuda", "wordllama")
"""The distributions of the extra `docs`."""


def docs_findings(settings: Settings) -> Iterator[Finding]:
    """Yield the library index, the extra that makes it better, and the key of Pinecone."""
    yield _library(settings)
    yield _extra()
    yield _pinecone(settings)


def _library(settings: Settings) -> Finding:
    path = library_index_path(settings)
    built = built_sources(path)
    if not built:
        how = "not built: kopt docs build gets FlashInfer, vLLM, SGLang, CUTLASS and more"
        return Finding("kernel library", False, False, how)
    documents = sum(source.chunks for source in built)
    said = f"{documents:,} documents, {path.stat().st_size / MB:,.0f} MB, of "
    names = [f"{source.source} {source.version or ''}".strip() for source in built]
    return Finding("kernel library", True, False, said + ", ".join(names))


def _extra() -> Finding:
    lacking = [name for name in EXTRA if not _is_installed(name)]
    if not lacking:
        return Finding("docs extra", True, False, ", ".join(EXTRA))
    how = f"{sys.executable} -m pip install 'kopt-mcp[docs]', then kopt docs build"
    what = f"no {', '.join(lacking)}: documents are cut and ranked less well"
    return Finding("docs extra", False, False, f"{what}; {how}")


def _pinecone(settings: Settings) -> Finding:
    if settings.pinecone_api_key is None:
        said = "PINECONE_API_KEY is not set: searches ask nothing but this machine"
        return Finding("Pinecone", False, False, said)
    said = f"PINECONE_API_KEY is set; searches ask the index {settings.pinecone_index_name} too"
    return Finding("Pinecone", True, False, said)


def _is_installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False
