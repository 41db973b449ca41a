"""A coding agent played by a script: the options of Claude Code and Codex in, their events out.

`headless_clients.py` puts it on PATH as `claude` and as `codex`. It reads a turn back into the
messages that it was made of, lets the good model answer them, and holds the answer against the
schema that it was given. STAND_IN names what goes wrong instead; every call leaves a line in the
file STAND_IN_LOG.
"""

import json
import os
import re
import signal
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from support.messages_wire import Turn

Document = dict[str, Any]
_BLOCK = re.compile(r"<<<([0-9a-f]{16}): ([^\n]*)>>>\n(.*?)\n<<<end of \1>>>", re.DOTALL)
COST_USD = 0.0125
MODEL = "claude-opus-5-5"
USAGE = {"input": 900, "read": 300, "output": 70}


def main(client: str) -> int:
    """Do what `client` would do with the options of this call."""
    words = sys.argv[1:]
    fault = os.environ.get("STAND_IN", "")
    _log(client, words)
    if words == ["--version"]:
        print("9.9.9 (stand-in)")
        return 0
    if words in (["auth", "status"], ["login", "status"]):
        return _tell_login(client, fault == "logged_out")
    if words == ["debug", "models"]:
        print(json.dumps({"models": [{"slug": "m", "tool_mode": "code_mode_only"}]}))
        return 0
    given = sys.stdin.read()
    return _claude(words, given, fault) if client == "claude" else _codex(words, given, fault)


def _tell_login(client: str, is_out: bool) -> int:
    if client == "claude":
        print(json.dumps({"loggedIn": not is_out}))
    else:
        print("Not logged in" if is_out else "Logged in using ChatGPT", file=sys.stderr)
    return int(is_out)


def _claude(words: list[str], given: str, fault: str) -> int:
    _go_wrong_at_start(fault)
    tools = ["StructuredOutput", *(["Bash"] if fault == "tools" else [])]
    _say({"type": "system", "subtype": "init", "tools": tools, "mcp_servers": []})
    _go_wrong(fault)
    blocks = json.loads(given)["message"]["content"]
    conversation = "\n\n".join(block["text"] for block in blocks)
    system = Path(_option(words, "--system-prompt-file")).read_text("utf-8")
    schema = json.loads(_option(words, "--json-schema"))
    usage = {
        "inputTokens": USAGE["input"],
        "cacheReadInputTokens": USAGE["read"],
        "outputTokens": USAGE["output"],
    }
    result: Document = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "stop_reason": "tool_use",
        "total_cost_usd": None if fault == "no_cost" else COST_USD,
        "modelUsage": {MODEL: usage},
    }
    match fault:
        case "limit":
            reset = time.time() + 10_000
            _say({"type": "rate_limit_event", "rate_limit_info": _rejected(reset)})
            _say({"type": "assistant", "error": "rate_limit"})
            said = "You've hit your 5-hour limit \u00b7 resets 3am"
            _say(_failed(result, 429, said))
            return 1
        case "expired":
            _say({"type": "assistant", "error": "authentication_failed"})
            _say(_failed(result, 401, "Invalid bearer token sk-ant-oat01-secretsecretsecret"))
            return 1
        case "cut":
            _say({**result, "is_error": True, "api_error": "max_output_tokens"})
            return 1
        case "refusal":
            details = {"category": "frontier_llm", "explanation": "no kernels"}
            _say({"type": "assistant", "message": {"stop_details": details}})
            _say({**result, "is_error": True, "stop_reason": "refusal"})
            return 1
        case "plain":
            _say({**result, "result": "I would rather talk."})
            return 0
        case _:
            answer = answer_turn(system, conversation, schema)
            _say({"type": "assistant", "request_id": "req_stand_in", "message": {"content": []}})
            _say({**result, "result": json.dumps(answer), "structured_output": answer})
            return 0


def _rejected(reset: float) -> Document:
    return {"status": "rejected", "resetsAt": int(reset), "rateLimitType": "five_hour"}


def _failed(result: Document, status: int, said: str) -> Document:
    nothing: Document = {"modelUsage": {}, "total_cost_usd": 0, "is_error": True}
    return {**result, **nothing, "api_error_status": status, "result": said}


def _codex(words: list[str], given: str, fault: str) -> int:
    _go_wrong_at_start(fault)
    _say({"type": "thread.started", "thread_id": "t"})
    _say({"type": "turn.started"})
    _go_wrong(fault)
    settings = dict(
        words[at + 1].split("=", 1) for at, word in enumerate(words) if word == "--config"
    )
    system = Path(json.loads(settings["model_instructions_file"])).read_text("utf-8")
    schema = json.loads(Path(_option(words, "--output-schema")).read_text("utf-8"))
    match fault:
        case "limit" | "expired":
            said = {
                "limit": "You\u2019ve hit your usage limit. Try again at Nov 30th.",
                "expired": "unexpected status 401 Unauthorized: token expired",
            }[fault]
            _say({"type": "error", "message": said})
            _say({"type": "turn.failed", "error": {"message": said}})
            return 1
        case "tools":
            _say({"type": "item.completed", "item": {"type": "command_execution"}})
        case _:
            pass
    answer = answer_turn(system, given, schema)
    text = "I would rather talk." if fault == "plain" else json.dumps(answer)
    _say({"type": "item.completed", "item": {"type": "agent_message", "text": text}})
    usage = {
        "input_tokens": USAGE["input"] + USAGE["read"],
        "cached_input_tokens": USAGE["read"],
        "output_tokens": USAGE["output"],
    }
    _say({"type": "turn.completed", "usage": {} if fault == "no_cost" else usage})
    return 0


def _go_wrong_at_start(fault: str) -> None:
    if fault == "old":
        print("error: unknown option '--safe-mode'", file=sys.stderr)
        sys.exit(1)
    if fault == "garbage":
        print("{not json\n\x1b[31mWelcome!\n[1, 2]\nnull")
        sys.exit(0)


def _go_wrong(fault: str) -> None:
    match fault:
        case "crash":
            print("panic: \x1b[31mno more\x1b[0m", file=sys.stderr)
            sys.exit(7)
        case "hang":
            signal.pause()
        case "huge":
            while True:
                print("x" * 65536, flush=True)
        case _:
            return


def answer_turn(system: str, conversation: str, schema: Document) -> object:
    """Return what the good model says, in the form of `schema`."""
    from support.played.good import good_model

    names = _tool_names(schema)
    body: Document = {
        "system": [{"text": system}],
        "messages": read_messages(conversation),
        "tools": [{"name": name} for name in names],
    }
    turn = good_model(body)
    assert isinstance(turn, Turn)
    if names:
        calls = [{"tool": one.name, "arguments": one.arguments} for one in turn.calls]
        answer: object = {"calls": calls, "text": turn.text}
    else:
        answer = json.loads(turn.text)
    answer = fitted(schema, answer)
    import_module("jsonschema").validate(answer, schema)
    return answer


def read_messages(conversation: str) -> list[Document]:
    """Return the messages that the texts of a turn were made of."""
    first = _BLOCK.search(conversation)
    opening = conversation[: first.start()].rstrip("\n") if first else conversation
    messages: list[Document] = [{"role": "user", "content": [{"type": "text", "text": opening}]}]
    for found in _BLOCK.finditer(conversation):
        role, block = _block(found[2], found[3])
        if messages[-1]["role"] != role:
            messages.append({"role": role, "content": []})
        messages[-1]["content"].append(block)
    return messages


def _block(title: str, text: str) -> tuple[str, Document]:
    if title == "your turn":
        return "assistant", {"type": "text", "text": text}
    if title.startswith("your call "):
        call = json.loads(text)
        place = {"id": title.removeprefix("your call "), "name": call["tool"]}
        return "assistant", {"type": "tool_use", **place, "input": call["arguments"]}
    result = re.fullmatch(r"result of .*, call (\w+)(, which failed)?", title)
    if result is not None:
        block = {"type": "tool_result", "tool_use_id": result[1], "content": text}
        return "user", {**block, "is_error": result[2] is not None}
    return "user", {"type": "text", "text": text}


def _tool_names(schema: Document) -> list[str]:
    if "calls" not in schema["properties"]:
        return []
    branches = schema["properties"]["calls"]["items"]["anyOf"]
    return [one["properties"]["tool"]["enum"][0] for one in branches]


def fitted(schema: Document, value: object) -> object:
    """Return `value` as the strict form of a schema has it: nulls for what is left out."""
    as_it_is = value
    own = cast(Document, value) if isinstance(value, dict) else {}
    for branch in schema.get("anyOf", ()):
        named: list[object] = branch.get("properties", {}).get("tool", {}).get("enum", [])
        is_any = "tool" not in own and value is not None and branch.get("type") != "null"
        if is_any or own.get("tool") in named:
            return fitted(branch, as_it_is)
    match schema.get("type"):
        case "array" if isinstance(value, dict):
            return [{"name": name, "value": one} for name, one in own.items()]
        case "array" if isinstance(value, list):
            return [fitted(schema["items"], one) for one in cast(list[object], value)]
        case "object" if isinstance(value, dict):
            return {name: fitted(one, own.get(name)) for name, one in schema["properties"].items()}
        case _:
            return as_it_is


def _option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


def _say(event: Document) -> None:
    print(json.dumps(event), flush=True)


def _log(client: str, words: list[str]) -> None:
    line = {
        "client": client,
        "words": words,
        "pid": os.getpid(),
        "folder": os.getcwd(),
        "files": os.listdir("."),
        "variables": sorted(os.environ),
    }
    with open(os.environ["STAND_IN_LOG"], "a", encoding="utf-8") as log:
        log.write(json.dumps(line) + "\n")
