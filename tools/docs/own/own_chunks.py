"""Chunks of every source of the corpus: which reader serves which file, and what joins a chunk."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, cast

import yaml

from kopt.kernels.families import FAMILIES
from kopt.tools.docs.chunking.brace_scanner import code_items, comment_text, head_lines
from kopt.tools.docs.chunking.sizes import line_ranges
from kopt.tools.docs.chunking.units import CPP_IDLE, Unit
from kopt.tools.docs.records import Chunk
from kopt.tools.docs.words.code_tokens import arch_tag

from .corpus import QUALITY, Corpus, CorpusFile
from .intrinsic_cards import read_cards
from .markdown_chunks import entries, sections
from .winner_facts import WinnerFacts, winner_facts

KNOWN_ARCHS = ("sm80", "sm86", "sm89", "sm90", "sm100", "sm103", "sm120")
"""Ascending: "(sm_90 on)" in a comment or heading means sm90 and all after it."""

_SINCE = re.compile(r"\((sm_\d+) on\)")
_ONLY = re.compile(r"\(((?:sm_\d+, )*sm_\d+) only\)")
_FAMILY = re.compile(r"^family:\s*(.+)$", re.MULTILINE)
_INTERNAL_SCOPES = frozenset({"sim"})
DTYPES = {
    "fp32": r"\bfloat\b|float32|fp32",
    "fp16": r"fp16|float16|\bhalf2?\b|__half",
    "bf16": r"bf16|bfloat16",
    "fp8": r"fp8|e4m3|e5m2|float8",
    "fp4": r"fp4|e2m1",
    "int8": r"\bu?int8(?:_t)?\b",
}


def make_chunks(corpus: Corpus) -> list[Chunk]:
    """Return the chunks of all files, duplicates merged, in the order of the corpus."""
    chunks: list[Chunk] = []
    for file in sorted(corpus.files, key=_is_winner):
        with suppress(OSError):  # gone since: the next search has a corpus without it
            chunks += _file_chunks(file)
    return _merged(_described(chunk) for chunk in chunks)


def _file_chunks(file: CorpusFile) -> Iterable[Chunk]:
    if file.source == "intrinsics":
        return _card_chunks(file)
    if file.path.endswith(".md"):
        return _page_chunks(file)
    if file.path.endswith(".yaml"):
        return [_gpu_chunk(file) if file.source == "gpus" else _problem_chunk(file)]
    return _code_chunks(file, winner_facts(file) if _is_winner(file) else None)


def _is_winner(file: CorpusFile) -> bool:
    return file.source == "winners" and not file.path.endswith(".md")


def _code_chunks(file: CorpusFile, facts: WinnerFacts | None = None) -> Iterator[Chunk]:
    text = file.text
    lines = text.split("\n")
    items = [item for item in code_items(text) if not _INTERNAL_SCOPES & set(item.scope)]
    head = head_lines(text)
    archs = facts.archs if facts else _archs_named("\n".join(lines[:head]))
    family = _FAMILY.search("\n".join(lines[:head]))
    tags = tuple(re.findall(r"[a-z]\w+", family[1].split("#")[0])) if family else ()
    is_header = file.source in ("headers", "notes")
    about = facts.about if facts else ""
    if head:
        body = "\n".join(lines[:head])
        if is_header:
            body = f"{body}\n// Offers: {', '.join(item.symbol or '' for item in items)}"
        yield _chunk(
            file,
            (1, head),
            kind="overview" if is_header else "plan",
            title=_code_title(file, None, facts),
            comment=f"{about} {comment_text(body)}".strip(),
            body=body,
            derived=is_header,
            arch=archs,
            tags=tags,
        )
    context = comment_text("\n".join(lines[:head])).split(". ")[0] if is_header else ""
    for item, said in zip(items, _said(items), strict=True):
        for first, last in line_ranges(item.start_line, item.end_line):
            yield _chunk(
                file,
                (first, last),
                kind=item.kind,
                symbol=item.symbol,
                title=_code_title(file, item, facts),
                comment=" ".join(part for part in (said, context, about) if part),
                body="\n".join(lines[first - 1 : last]),
                arch=_archs_named(item.comment) or archs,
                tags=tags,
            )


def _said(items: list[Unit]) -> list[str]:
    """Return what documents each item; without a comment, that of a namesake right above.

    `tma_load_2d` below `tma_load_1d` needs no words of its own for a reader, but for a search.
    """
    said: list[str] = []
    above = ""
    for item in items:
        stem = (item.symbol or "").rpartition("_")[0]
        said.append(said[-1] if not item.comment and stem and stem == above else item.comment)
        above = stem
    return said


def _code_title(file: CorpusFile, item: Unit | None, facts: WinnerFacts | None) -> str:
    name = file.path.rsplit("/", 1)[1]
    folder = file.path.split("/")[-2]
    if file.source == "headers":
        return f"kopt::{item.symbol}, <kopt/{name}>" if item else f"<kopt/{name}>"
    if file.source == "notes":
        return f"pattern {item.symbol}" if item else f"patterns to copy, {name}"
    of = facts.title if facts else f"reference kernel of {folder}"
    return f"{of}: {item.symbol}" if item else f"{of}: header and mapping"


def _archs_named(comment: str) -> tuple[str, ...]:
    if only := _ONLY.search(comment):
        return tuple(tag for name in only[1].split(", ") if (tag := arch_tag(name)))
    since = _SINCE.search(comment)
    tag = arch_tag(since[1]) if since else None
    return KNOWN_ARCHS[KNOWN_ARCHS.index(tag) :] if tag in KNOWN_ARCHS else ()


def _card_chunks(file: CorpusFile) -> Iterator[Chunk]:
    for card in read_cards(file.text):
        yield _chunk(
            file,
            (card.start_line, card.end_line),
            kind="intrinsic",
            language="cuda",
            symbol=card.symbol,
            signature=card.form,
            title=f"intrinsic {card.name}",
            comment=card.what,
            tags=(file.path.rsplit("/", 1)[1].removesuffix(".yaml"),),
            arch=_archs_of(card.targets),
            body=card.text,
            derived=True,
        )


def _archs_of(targets: str) -> tuple[str, ...]:
    """Return the tags of a card's targets; () for all of them."""
    tags = [arch_tag(target.rstrip("+")) for target in targets.split()]
    if targets.endswith("+"):
        return KNOWN_ARCHS[KNOWN_ARCHS.index(tags[0]) :] if tags[0] in KNOWN_ARCHS else ()
    return tuple(dict.fromkeys(tag for tag in tags if tag))


def _problem_chunk(file: CorpusFile) -> Chunk:
    text = file.text
    fields = _yaml_fields(text)
    name = file.path.split("/")[-2]
    workloads: object = fields.get("workloads")
    kernel_ids = [f"{name}_{key}" for key in _fields(workloads)]
    words = (fields.get("op_type"), fields.get("tolerance"), *kernel_ids)
    return _chunk(
        file,
        (1, _line_count(text)),
        kind="problem",
        symbol=name,
        title=f"problem {name}",
        comment=str(fields.get("description", "")),
        tags=tuple(str(word) for word in words if word),
        body=text.rstrip(),
    )


def _gpu_chunk(file: CorpusFile) -> Chunk:
    text = file.text
    fields = _yaml_fields(text)
    arch = str(fields.get("arch", ""))
    return _chunk(
        file,
        (1, _line_count(text)),
        kind="gpu",
        symbol=str(fields.get("name", file.file.stem)),
        title=f"GPU {fields.get('name')}, {arch}",
        comment="Limits of the GPU per SM and per block: bandwidth, SMs, clock, shared memory",
        arch=tuple(tag for tag in [arch_tag(arch)] if tag),
        body=text.rstrip(),
    )


def _page_chunks(file: CorpusFile) -> Iterator[Chunk]:
    page = file.path.rsplit("/", 1)[1]
    is_note = file.source == "notes"
    for section in sections(file.text):
        headings = section.headings or (page,)
        if section.headings and section.end_line == section.start_line:
            continue  # a heading alone says nothing
        heading = headings[-1]
        is_family = is_note and heading in FAMILIES
        title = _note_title(headings) if is_note else _section_title(page, headings)
        yield _chunk(
            file,
            (section.start_line, section.end_line),
            kind="note" if is_note else "section",
            symbol=heading if is_family else None,
            title=title,
            comment=" ".join(headings),
            tags=headings[:1] if is_note and headings[0] in FAMILIES else (),
            arch=_archs_named(heading) if is_note else (),
            body=section.text,
        )
        for entry in entries(section):
            yield _chunk(
                file,
                (entry.line, entry.line),
                kind="entry",
                symbol=entry.name,
                title=f"{page}: {entry.name} ({entry.headings[-1] if entry.headings else page})",
                comment=" ".join(entry.headings),
                body=entry.text,
                derived=True,
            )


def _note_title(headings: Sequence[str]) -> str:
    heading = headings[-1]
    is_of_family = headings[0] in FAMILIES and len(headings) > 1
    return f"technique {headings[0]}: {heading}" if is_of_family else f"technique {heading}"


def _section_title(page: str, headings: Sequence[str]) -> str:
    return f"{headings[0] if len(headings) > 1 else page}: {headings[-1]}"


def _chunk(file: CorpusFile, lines: tuple[int, int], **fields: Any) -> Chunk:
    return Chunk(
        source=file.source,
        version=file.version,
        license=file.license,
        quality=QUALITY.get(file.source, 1.0),
        path=file.path,
        start_line=lines[0],
        end_line=lines[1],
        **fields,
    )


def _described(chunk: Chunk) -> Chunk:
    """Return `chunk` with the number types that it speaks of."""
    text = f"{chunk.title} {chunk.comment} {chunk.body}".lower()
    dtype = tuple(name for name, pattern in DTYPES.items() if re.search(pattern, text))
    return chunk.model_copy(update={"dtype": dtype})


def _merged(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Return the chunks, of functions with the same code in one source the first only."""
    kept: dict[str, Chunk] = {}
    for chunk in chunks:
        code = CPP_IDLE.sub("", chunk.body)
        key = f"{chunk.source} {code}" if chunk.kind in ("device", "kernel") else chunk.uid
        first = kept.get(key)
        if first is None:
            kept[key] = chunk
        else:
            place = f"{chunk.path}:{chunk.start_line}"
            kept[key] = first.model_copy(update={"also_at": (*first.also_at, place)})
    return list(kept.values())


def _yaml_fields(text: str) -> dict[str, Any]:
    """Return the fields of a mapping; none of a text that is no YAML, which is quoted as it is."""
    try:
        # libyaml, ten times as fast, ends the process on deep nesting
        return _fields(yaml.safe_load(text))
    except (yaml.YAMLError, RecursionError):
        return {}


def _fields(value: object) -> dict[str, Any]:
    mapping = cast("dict[object, Any]", value) if isinstance(value, dict) else {}
    return {str(key): field for key, field in mapping.items()}


def _line_count(text: str) -> int:
    return len(text.rstrip().split("\n"))
