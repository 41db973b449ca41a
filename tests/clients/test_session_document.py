"""A session's stream becomes a document from which its outline can be read back."""

import json
from dataclasses import replace
from typing import Any

from support.messages_wire import Exchange, ToolCall
from support.session_document import Call, Session, outline, read_session, render, reply_facts
from support.session_script import ScriptedModel, Step

SESSION = Session(
    client="Claude Code 1.0",
    server="connected",
    tools=("compile",),
    calls=(
        Call("I compile.", "compile", {"path": "/p/a.cu"}, {"status": "passed", "next": "check"}),
        Call("", "benchmark", {}, {"status": "passed", "verdict": "estimated", "latency_us": 1.5}),
    ),
    closing="Done.",
)


def document(session: Session) -> str:
    return render(session, "# A session", "/p")


def with_reply(**facts: Any) -> Session:
    return replace(SESSION, calls=(replace(SESSION.calls[0], reply=facts), SESSION.calls[1]))


def stream(*contents: tuple[str, list[dict[str, Any]]]) -> str:
    server = {"name": "kopt", "status": "connected"}
    head = {"claude_code_version": "1.0", "mcp_servers": [server], "tools": ["mcp__kopt__compile"]}
    events = [
        {"type": "system", "subtype": "init", **head},
        *({"type": kind, "message": {"content": content}} for kind, content in contents),
        {"type": "result", "result": "Done."},
    ]
    return "\n".join(json.dumps(event) for event in events)


def asked(call: str, tool: str) -> tuple[str, list[dict[str, Any]]]:
    block: dict[str, Any] = {
        "type": "tool_use",
        "id": call,
        "name": f"mcp__kopt__{tool}",
        "input": {},
    }
    return "assistant", [{"type": "text", "text": f"On to {tool}."}, block]


def got(call: str, **facts: Any) -> tuple[str, list[dict[str, Any]]]:
    return "user", [{"type": "tool_result", "tool_use_id": call, "content": json.dumps(facts)}]


def test_outline_has_tools_outcomes_arguments_and_fields_in_order() -> None:
    first, second = outline(document(SESSION))
    assert (first.tool, first.outcome) == ("compile", "passed")
    assert (first.arguments, first.fields) == (("path",), ("status", "next"))
    assert (second.outcome, second.arguments) == ("passed, estimated", ())


def test_other_values_leave_the_outline_as_it_is() -> None:
    other = with_reply(status="passed", next="something else")
    assert outline(document(other)) == outline(document(SESSION))


def test_other_status_or_field_changes_the_outline() -> None:
    outlines = {
        outline(document(session))
        for session in (
            SESSION,
            with_reply(status="compile_error", next="check"),
            with_reply(status="passed", further=1),
        )
    }
    assert len(outlines) == 3


def test_long_values_are_cut_and_no_field_is_lost() -> None:
    text = "\n".join(str(number) for number in range(100))
    shown = document(with_reply(status="passed", log=text, rows=list(range(9)), next="x"))
    assert "... 86 more lines" in shown and "... 5 more" in shown
    assert outline(shown)[0].fields == ("status", "log", "rows", "next")


def test_path_of_the_day_is_not_shown() -> None:
    assert "~/project/a.cu" in document(SESSION)


def test_stream_is_read_with_words_calls_and_replies() -> None:
    session = read_session(stream(asked("a", "compile"), got("a", status="passed")))
    assert (session.server, session.tools, session.closing) == ("connected", ("compile",), "Done.")
    assert session.calls == (Call("On to compile.", "compile", {}, {"status": "passed"}),)


def test_wait_for_a_job_belongs_to_the_call_before() -> None:
    waited = (asked("b", "job_wait"), got("b", status="passed"))
    session = read_session(
        stream(asked("a", "compile"), got("a", status="running", job_id="j"), *waited)
    )
    assert [(call.tool, call.outcome) for call in session.calls] == [("compile", "passed")]


def test_facts_are_found_among_links() -> None:
    assert reply_facts('[Resource link: log] kopt://x\n{"status": "passed"}') == {
        "status": "passed"
    }


def test_facts_are_read_from_yaml_too() -> None:
    assert reply_facts("status: passed\nnext: x\n") == {"status": "passed", "next": "x"}


def test_error_is_kept_as_text() -> None:
    assert reply_facts("Error: no such kernel") == {"text": "Error: no such kernel"}


def test_scripted_model_waits_for_a_running_job_and_goes_on_with_its_reply() -> None:
    steps = tuple(Step("", tool, lambda done: {"after": len(done)}) for tool in ("first", "second"))
    model = ScriptedModel(steps, "Done.")
    began = Exchange(ToolCall("first", {}), '{"status": "running", "job_id": "j"}', is_error=False)
    over = Exchange(ToolCall("mcp__kopt__job_wait", {}), '{"status": "passed"}', is_error=False)
    assert model((began,)).calls == (ToolCall("mcp__kopt__job_wait", {"job_id": "j"}),)
    assert model((began, over)).calls == (ToolCall("mcp__kopt__second", {"after": 1}),)
    after = Exchange(ToolCall("second", {}), '{"status": "passed"}', is_error=False)
    assert (model((began, over, after)).text, model((began, over, after)).calls) == ("Done.", ())
