"""The three live pages: all runs, one run, runs side by side; each as parts that change alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from kopt.config.errors import KoptError
from kopt.search.reports.comparison import PARTS as SIDES
from kopt.search.reports.comparison import ComparisonPage
from kopt.search.reports.markup import macro
from kopt.search.reports.run_page import PARTS, RunPage

from .run_pages import RunPages, Stamp

MOST_SIDES = 4
Parts = dict[str, Markup]
PARTS_OF_RUN = (PARTS[0], "events", *PARTS[1:])
"""The names of the parts of one run's page, from top to bottom."""


@dataclass(frozen=True)
class LiveView:
    """One page of a live view: of all runs, of one, or of several side by side."""

    pages: RunPages
    address: str
    """What every address of the server begins with, `/TOKEN/`."""
    runs: tuple[str, ...] = ()
    """The runs that it shows; () for the list of all."""

    @property
    def title(self) -> str:
        """The title of the page."""
        return " and ".join(self.runs) or "kopt: runs"

    def stamp(self) -> Stamp:
        """Return a value that is equal while nothing was written to what is shown.

        Raises:
            ToolError: There is no such run.
        """
        return self.pages.stamp_of(self.runs)

    def parts(self) -> Parts:
        """Return the parts of the page by name, from top to bottom.

        What cannot be read is said in the first part, and the others are empty.
        """
        try:
            return dict(self._parts())
        except KoptError as error:
            first, *others = self._names()
            trouble = macro("live.html", "trouble", str(error))
            return {first: trouble, **dict.fromkeys(others, Markup(""))}

    def code_part(self, seq: int) -> Markup | None:
        """Return the code of one candidate of the run; None where there is none of that number.

        Raises:
            KoptError: The run cannot be read.
        """
        page = self._run_page(self.runs[0])
        if seq >= len(page.report.population):
            return None
        return page.code_part(seq)

    def _names(self) -> tuple[str, ...]:
        """Return the names of the parts of this page."""
        if not self.runs:
            return ("runs",)
        return PARTS_OF_RUN if len(self.runs) == 1 else SIDES

    def _parts(self) -> Sequence[tuple[str, Markup]]:
        match self.runs:
            case ():
                found = self.pages.list()
                home = str(self.pages.home)
                return [("runs", macro("runs.html", "runs", found, self.address, home))]
            case (run,):
                lines = self.pages.run(run).lines
                outcome, *others = self._run_page(run).parts()
                return [outcome, ("events", macro("live.html", "events", lines)), *others]
            case runs:
                return ComparisonPage(tuple(map(self._run_page, runs))).parts()

    def _run_page(self, run: str) -> RunPage:
        address = f"{self.address}runs/{run}/code"
        return RunPage(self.pages.run(run).contents, address)


def whole_view(view: LiveView, events: str) -> Markup:
    """Return the page of `view`; its changes come from the address `events`."""
    parts = view.parts()
    return macro("live.html", "page", view.title, view.address, events, parts.items())
