"""Search hits and documents as text. Quoted lines begin with a bar."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from kopt.tools.docs.records import DocumentText, Hit, SearchResult
from kopt.tools.docs.visible_text import shown
from kopt.tools.facts.docs_facts import origin_words, place_words, rest_words

from .tables import View

BAR = "│ "
MOST_PLACES = 3
"""How many files are named of a text that stands in several."""


def search_view(result: SearchResult) -> View:
    """Yield the hits, what else matched, and what no document has."""
    for number, hit in enumerate(result.hits, start=1):
        yield from _hit(number, hit)
    unknown_words = {unknown.word for unknown in result.unknown_words}
    if not result.hits and not set(result.query.split()) <= unknown_words:  # else they are named
        yield Text(f"no document matches {shown(result.query)[:200]!r}")
    if result.further:
        yield Text("See also", style="bold")
        for further in result.further:
            yield Text(f"  {further.location}  {further.title}")
    if result.next_page is not None:
        more = f"{result.left_out} more match" if result.left_out else "these in full"
        yield Text(f"{more}: --page {result.next_page}", style="dim")
    elif result.left_out:
        yield Text(f"{result.left_out} more match; --k and --max-tokens show more", style="dim")
    for unknown in result.unknown_words:
        near = f"; near: {', '.join(unknown.nearest)}" if unknown.nearest else ""
        yield Text(f"no document has {shown(unknown.word)!r}{shown(near)}", style="yellow")
    for note in (result.advice, result.degraded, result.offer):
        if note:
            yield Text(shown(note), style="yellow")


def document_view(document: DocumentText) -> View:
    """Yield one document in full."""
    chunk = document.document
    yield Text(shown(chunk.title), style="bold")
    yield Text(shown(place_words(chunk)), style="dim")
    yield Text(shown(origin_words(chunk)), style="dim")
    yield from _places("also at", chunk.also_at)
    yield Quotation(shown(f"{chunk.head}\n...\n{chunk.body}" if chunk.head else chunk.body))


def _hit(number: int, hit: Hit) -> Iterator[RenderableType]:
    yield Text(f"{number}. {hit.title}", style="bold")
    yield Text(f"   {place_words(hit)}", style="dim")
    matched = f"  matched {', '.join(hit.matched)}" if hit.matched else ""
    yield Text(shown(f"   {origin_words(hit)}{matched}"), style="dim")
    yield from _places("   also at", hit.also_at)
    yield Quotation(hit.text)
    if hit.left_out_lines:
        yield Text(f"   {rest_words(hit)}: kopt docs show {hit.uid!r}", style="dim")
    yield Text("")


def _places(words: str, places: Sequence[str]) -> Iterator[RenderableType]:
    if places:
        named = ", ".join(places[:MOST_PLACES])
        rest = f" and {len(places) - MOST_PLACES} more" if len(places) > MOST_PLACES else ""
        yield Text(shown(f"{words} {named}{rest}"), style="dim")


@dataclass(frozen=True)
class Quotation:
    """Text with a bar before each line on the screen, so that none passes for one of kopt's."""

    text: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yield the lines, folded to the width."""
        width = max(1, options.max_width - len(BAR))
        for line in self.text.split("\n"):
            for part in Text(line.replace("\t", "    ")).wrap(console, width) or [Text()]:
                yield Text(BAR) + part
