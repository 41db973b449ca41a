"""The agents of a run on this machine: the model that they ask, what they are told and given."""

from kopt.config.gpu_specs import gpu_for_arch
from kopt.kernels.candidate import Candidate
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import find_kernel
from kopt.search.agents.agent_context import AgentContext, BriefingFacts, make_briefing
from kopt.search.agents.agent_tools import AgentTools
from kopt.search.agents.documents import DocumentSearch
from kopt.search.agents.roles import ModelRoles
from kopt.search.models.call_ledger import CallLedger
from kopt.search.models.client import ModelClient
from kopt.search.models.model_source import open_model, refuse_unpriced
from kopt.search.models.prices import load_prices
from kopt.search.models.rate_limit import RateLimit, RateSettings
from kopt.search.rounds.main_thread import MainThread
from kopt.search.store.store import RunStore

from .parts import RunPlace, catalogue_of


def model_roles(store: RunStore, place: RunPlace, main_thread: MainThread) -> ModelRoles:
    """Return the agents with all that they are told: made when the first of them is needed."""
    run, settings = store.reader.state().settings, place.site.settings
    client = _model_client(store, place, main_thread)
    problem, workload = find_kernel(run.kernel, settings.problems)
    reader = DocumentSearch(settings, store.folder.name)
    facts = BriefingFacts(
        problem=problem,
        workload=workload,
        gpu=place.site.device.gpu or gpu_for_arch(run.arch),
        is_measured=place.site.timer is not None,
        start=Candidate(store.reader.source(run.start_sha), run.start_name),
        documents=_documents(store, reader, problem),
        techniques=catalogue_of(store.reader, settings),
    )

    def count(gpu_seconds: float) -> None:
        main_thread.post(lambda: store.add_tool_time(gpu_seconds))

    tools = AgentTools(run.kernel, run.arch, place.site, reader, count, run.search.profile)
    return ModelRoles(AgentContext(client, make_briefing(facts, run.search), tools))


def _model_client(store: RunStore, place: RunPlace, main_thread: MainThread) -> ModelClient:
    """Return the client of the model, once prices and access are known to be there."""
    run, settings = store.reader.state().settings, place.site.settings
    how, prices = run.search, load_prices(settings.home)
    refuse_unpriced(how, prices)
    pace = RateSettings(how.concurrency, how.requests_per_minute, how.input_tokens_per_minute)
    return ModelClient(
        model=open_model(place.models, settings, main_thread.halt),
        ledger=CallLedger(store.log, run.budget),
        thread=main_thread,
        prices=prices,
        rate=RateLimit(pace, main_thread.halt),
        halt=main_thread.halt,
    )


def _documents(store: RunStore, reader: DocumentSearch, problem: Problem) -> str:
    """Return what the agents are given to read: found once, so that a resumed run says the same."""
    state = store.reader.state()
    if state.documents_sha is None:
        store.keep_documents(reader.documents(problem, state.settings.arch))
        state = store.reader.state()
    return store.reader.source(state.documents_sha or "")
