"""What the writer of a run holds in memory is what its file says, after every transaction."""

from pathlib import Path

from kopt.search.records.run_state import Event, EventKind
from kopt.search.rounds.advance import run_search
from kopt.search.selection.ranking import rank
from kopt.search.storage.artifacts import open_artifacts
from kopt.search.store.run_reader import RunReader
from kopt.search.store.schema import open_viewer
from kopt.search.store.store import FILE_NAME, RunStore
from support.scripted_agents import agents_search, scripted_model
from support.scripted_runs import new_store, search


class _Checked:
    """Compares the writer's reader with a new one after every event."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self.kinds: set[EventKind] = set()

    def see(self, event: Event) -> None:
        """Compare both after `event`."""
        self.kinds.add(event.kind)
        store = self._store
        connection = open_viewer(store.folder / FILE_NAME)
        viewer = RunReader(connection, open_artifacts(store.folder.parents[1]))
        assert store.reader.state() == viewer.state(), event.kind
        assert store.reader.members() == viewer.members(), event.kind
        assert store.reader.rounds() == viewer.rounds(), event.kind
        assert store.reader.branches() == viewer.branches(), event.kind
        connection.close()


def _line(call: str) -> str:
    return {"r1/b0/coder/0": "reduction 4.0", "r1/b1/coder/0": "layout wrong"}.get(
        call, f"algebra 9.{call.count('/')} // {call}"
    )


def test_state_in_memory_is_that_of_the_file_after_every_event(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        checked = _Checked(store)
        run_search(agents_search(store, scripted_model(_line)), on_event=checked.see)
    assert {EventKind.BRANCH_ENDED, EventKind.EVALUATION_DONE, EventKind.REFLECTED} <= checked.kinds


def test_what_no_transaction_has_changed_is_not_read_again(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        run_search(search(store))
        reader = store.reader
        assert reader.members() is reader.members() and reader.state() is reader.state()
        store.add_document(0, "note", b"{}")
        quick = reader.members()[0].quick
        assert quick is not None and "note" in quick.artifacts


def test_events_name_the_leader_of_the_final_ranking(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        run_search(search(store))
        done = [one.data for one in store.reader.events() if one.kind == "evaluation_done"]
        ordering = [data for data in done if data["level"] == "quick"]
        assert ordering[-1]["leader"] == rank(store.reader.members())[0].seq
