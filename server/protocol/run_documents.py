"""The texts of `kopt://runs/{id}` and of the sources of a run's candidates.

Loads the search: import it inside the call.
"""

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.search.reports.run_report import report_run, view_run

from .refusal import shown

_LONGEST_NUMBER = 9


def run_text(run_id: str, settings: Settings) -> str:
    """Return a run with all its candidates as indented JSON.

    Raises:
        ToolError: There is no such run.
    """
    with view_run(run_id, settings) as (reader, folder):
        text = report_run(reader, folder).model_dump_json(by_alias=True, indent=1)
    return text.replace(str(settings.home), "$KOPT_HOME") + "\n"


def candidate_text(run_id: str, number: str, settings: Settings) -> str:
    """Return the source of candidate `number` of a run.

    Raises:
        ToolError: There is no such run, or it has no such candidate.
    """
    with view_run(run_id, settings) as (reader, folder):
        members = reader.members()
        is_number = number.isascii() and number.isdigit() and len(number) <= _LONGEST_NUMBER
        if not is_number or int(number) >= len(members):
            known = f"{folder.name} has candidates 0 to {len(members) - 1}"
            raise ToolError(f"no candidate {shown(number)}: {known}")
        return members[int(number)].source
