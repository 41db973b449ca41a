"""The learner: from results to changes of memory, in three answers that build on each other.

Policy evaluation says where predictions and results part, gap analysis why, parameter update what
memory should hold. The statistical update has been made by then: an answer that cannot be used
costs nothing but its tokens.
"""

from collections.abc import Mapping
from functools import partial
from typing import TypeVar

from kopt.kernels.record import ToldRecord
from kopt.search.knowledge.policy.calibration import Calibration, calibrate
from kopt.search.knowledge.records import Sample
from kopt.search.store.taught import MemoryUpdate
from kopt.tools.facts.fitting import Facts, cleaned, given
from kopt.tools.facts.rendering import render
from kopt.tools.facts.wording import Quoted

from .agent_context import AgentContext
from .conversation import Answer, obtain_answer, parse_answer
from .knowledge_prompt import (
    MOST_SAMPLES,
    SampleNames,
    entry_table,
    gain_words,
    joined,
    sample_table,
)
from .memory_edits import (
    Analysis,
    PolicyEvaluation,
    Update,
    edits_of,
    short,
)
from .prompt import fenced, render_prompt
from .tool_definitions import answer_schema
from .views import LearningView

_PROMPTS: Mapping[type[ToldRecord], str] = {
    PolicyEvaluation: "evaluate_policy",
    Analysis: "analyze_gaps",
    Update: "update_memory",
}
"""The prompt of each answer, in the order in which they are asked for."""
STAGES = len(_PROMPTS)
"""Conversations of one pass."""
_MOST_GAPS = 8
_DISAPPOINTING = 0.5  # of the predicted gain
_NONE = "None."

A = TypeVar("A", bound=ToldRecord)


def learn(context: AgentContext, view: LearningView) -> MemoryUpdate:
    """Return what a model would change in memory after the results of `view`.

    Without a gap between prediction and result nothing more is asked, and nothing is changed.

    Raises:
        CallFailed, BudgetSpent, Stopped: As `ModelClient.ask`; other failures are in the result.
    """
    shown = view.samples[-MOST_SAMPLES:]
    names = SampleNames(shown)
    samples = sample_table(shown, names, view.endings)
    entries = entry_table(view.base, (sample.state for sample in shown))
    first = {"samples": samples, "calibration": _calibration(shown), "entries": entries}
    evaluation = _asked(context, f"{view.id}/evaluate", PolicyEvaluation, first)
    if evaluation.value is None or not evaluation.value.gaps:
        return MemoryUpdate(why=evaluation.mistakes)
    gaps = [sample for sample in shown if disappoints(sample)]
    second = {
        "evaluation": _evaluation_words(evaluation.value),
        "gaps": sample_table(gaps, names, view.endings),
        "entries": entries,
    }
    analysis = _asked(context, f"{view.id}/analyze", Analysis, second)
    if analysis.value is None:
        return MemoryUpdate(why=analysis.mistakes)
    third = {
        "analysis": _analysis_words(analysis.value),
        "samples": samples,
        "entries": entries,
    }
    update = _asked(context, f"{view.id}/update", Update, third)
    if update.value is None:
        return MemoryUpdate(why=update.mistakes)
    return edits_of(update.value, view.base, names)


def disappoints(sample: Sample) -> bool:
    """Return whether a sample failed, lost, or gained less than half of what was predicted."""
    if sample.measured is None or sample.outcome in ("failed", "lost"):
        return True
    return sample.predicted is not None and sample.measured < _DISAPPOINTING * sample.predicted


def _asked(
    context: AgentContext, prefix: str, form: type[A], values: Mapping[str, str]
) -> Answer[A]:
    text = render_prompt(_PROMPTS[form], values)
    start = context.start("learner", prefix, text, answer_schema(form))
    return obtain_answer(context.client, start, partial(parse_answer, form))


def _calibration(samples: tuple[Sample, ...]) -> str:
    """Return how good the predictions were, over all states first."""
    rows = [_calibration_row(one) for one in calibrate(samples)]
    return render(cleaned({"calibration": rows})) if rows else "Nothing was predicted."


def _calibration_row(one: Calibration) -> Facts:
    return given(
        state=one.state or "all",
        architecture=one.arch_key,
        compared=one.compared,
        without_effect=one.without_effect,
        failed=one.failed,
        mean_surprise=None if one.reward is None else gain_words(one.reward),
        in_interval=None if one.coverage is None else f"{one.coverage:.0%}",
    )


def _evaluation_words(evaluation: PolicyEvaluation) -> str:
    rows = [
        {
            "state": Quoted(short(gap.state)),
            "technique": Quoted(short(joined(gap.techniques))),
            "finding": Quoted(short(gap.finding)),
            "samples": Quoted(short(", ".join(gap.samples))),
        }
        for gap in evaluation.gaps[:_MOST_GAPS]
    ]
    facts = {"summary": Quoted(short(evaluation.summary)), "gaps": rows}
    return fenced("evaluation", render(cleaned(facts)))


def _analysis_words(analysis: Analysis) -> str:
    rows = [
        {
            "assumption": Quoted(short(cause.assumption)),
            "cause": Quoted(short(cause.cause)),
            "samples": Quoted(short(", ".join(cause.samples))),
        }
        for cause in analysis.causes[:_MOST_GAPS]
    ]
    return fenced("analysis", render(cleaned({"causes": rows}))) if rows else _NONE
