"""The text of a candidate that a call hands in: as text, by a path, or by an address of kopt's.

By address (`kopt://runs/.../candidates/3`, `kopt://docs/kernels/.../x.cu`) an agent goes on from a
kernel that kopt has already without copying it through its own context.
"""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from kopt.config.errors import ToolError
from kopt.kernels.candidate import candidate_of_text

from .addresses import DOCUMENTS
from .choices import known_run
from .refusal import shown
from .serve_options import ServeOptions
from .workspace import SUFFIX, chosen_candidate

SCHEME = "kopt://"
_CANDIDATE = re.compile(r"kopt://runs/(run-[\w-]{1,60})/candidates/(\d{1,9})")


@dataclass(frozen=True)
class Reader:
    """Who reads a candidate, and what the server lets it read."""

    options: ServeOptions
    owner: str
    """Whose runs may be read."""

    def text(self, source: str, path: str) -> str:
        """Return the text of a candidate, of which exactly one of the two is given.

        Raises:
            ToolError: Both or neither are given, the text is no candidate's, or nothing that may be
                read is at the path or address.
        """
        if source or not path.startswith(SCHEME):
            return chosen_candidate(source, path, self.options.workspaces).source
        return candidate_of_text(self._at(path)).source

    def _at(self, address: str) -> str:
        found = _CANDIDATE.fullmatch(address)
        if found is not None:
            # Not at the top: they load numpy and SQLite, and a server starts without them.
            from .documents import candidate_text

            known_run(found[1], self.owner, self.options.settings)
            return candidate_text(found[1], found[2], self.owner, self.options.settings)
        if not address.startswith(DOCUMENTS) or not address.endswith(SUFFIX):
            raise ToolError(
                f"path {shown(address)} is no candidate's address: they look like"
                " kopt://runs/RUN/candidates/3 or kopt://docs/kernels/.../NAME.cu"
            )
        from kopt.search.advice.retrieval import Asker, read_for_run

        asker = Asker(None, "path of a call")
        return read_for_run(
            unquote(address.removeprefix(DOCUMENTS)), asker, self.options.settings
        ).document.body
