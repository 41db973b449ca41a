"""What an agent of `kopt run` is asked, read out of the body of a request as a model reads it.

The played models know nothing but this: no store, no clock, no memory of earlier requests. The
same request gets the same answer, as a client that sends one again expects.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import yaml

from support.messages_wire import Exchange, exchanges

_ROLE = re.compile(r"^# Your task: (.+)$", re.MULTILINE)
_MINIMAL = "write a faster kernel"  # what a minimal agent is for, as author and as fixer
_FENCED = re.compile(r"<<<data (\w+): (.*?)>>>\n(.*?)\n<<<end of data \1>>>", re.DOTALL)
_SOURCE = re.compile(r"source of candidate (\w+)")
_START = "candidate 0, the starting kernel"


@dataclass(frozen=True)
class Slot:
    """One place of a round that the planner fills."""

    id: str
    kind: str
    parents: tuple[str, ...]
    """Names of candidates, the skeleton first."""


@dataclass(frozen=True)
class Asked:
    """One request."""

    role: str
    """planner, coder, fixer, reflector, combiner, learner or verifier."""
    opening: str
    """The first message of the conversation."""
    said: tuple[str, ...]
    """All texts of the client, in order."""
    results: tuple[Exchange, ...]
    """The tools that were used in this conversation, with what they answered."""
    data: Mapping[str, str]
    """What stands between fences in the whole prompt, by title."""
    tools: frozenset[str]
    """Names of what it may use."""

    @property
    def is_repair(self) -> bool:
        """Whether the client was told something about an earlier reply that it could not use."""
        return len(self.said) > 1

    @property
    def kernel(self) -> str:
        """Kernel id."""
        return self.data["kernel"]

    @property
    def slots(self) -> tuple[Slot, ...]:
        """What a planner is to fill."""
        return tuple(
            Slot(one["id"], one["kind"], tuple(str(one["parents"]).split(", ")))
            for one in self._yaml_below("Slots to fill")["slots"]
        )

    @property
    def reserve_wanted(self) -> int:
        """How many hypotheses beyond the slots a planner is asked for."""
        found = re.search(r"^Beyond the slots: (\d+) ", self.opening, re.MULTILINE)
        return int(found[1]) if found else 0

    @property
    def hypothesis(self) -> Mapping[str, str]:
        """What a coder, fixer or combiner carries out, by field; empty where it is free."""
        pairs = (line.partition(": ") for line in self.data.get("hypothesis", "").splitlines())
        return {name: value for name, _, value in pairs}

    @property
    def sources(self) -> Mapping[str, str]:
        """Every source that is shown, by the candidate's name; `0` is the starting kernel."""
        sources = {
            found[1]: text
            for title, text in self.data.items()
            if (found := _SOURCE.match(title)) is not None
        }
        return {"0": self.data[_START], **sources}

    @property
    def parents(self) -> tuple[str, ...]:
        """The sources to start from, the skeleton first; without any, the starting kernel."""
        shown = tuple(source for name, source in self.sources.items() if name != "0")
        return shown or (self.sources["0"],)

    @property
    def candidates(self) -> list[dict[str, Any]]:
        """The rows of the table of candidates."""
        table = yaml.safe_load(self.data.get("candidates", "candidates: []"))
        return cast(list[dict[str, Any]], table["candidates"])

    def _yaml_below(self, heading: str) -> dict[str, Any]:
        text = self.opening.split(f"# {heading}\n")[1].split("\n\n")[0]
        return cast(dict[str, Any], yaml.safe_load(text))


def read_request(body: Mapping[str, Any]) -> Asked:
    """Return what the body of a request asks.

    Raises:
        ValueError: It is none of an agent.
    """
    system = "\n".join(block["text"] for block in body["system"])
    role = _ROLE.search(system)
    if role is None:
        raise ValueError("this is no request of an agent")
    messages: list[dict[str, Any]] = body["messages"]
    said = tuple(_said(messages))
    data = {title: text for _, title, text in _FENCED.findall(f"{system}\n{said[0]}")}
    kernel = re.search(r"^# The kernel: (\S+)$", system, re.MULTILINE)
    return Asked(
        role=role[1] if role[1] != _MINIMAL else _minimal_role(said[0]),
        opening=said[0],
        said=said,
        results=exchanges(messages),
        data=data | {"kernel": kernel[1] if kernel else ""},
        tools=frozenset(tool["name"] for tool in body.get("tools") or ()),
    )


def _minimal_role(opening: str) -> str:
    return "fixer" if "# What was found" in opening else "coder"


def _said(messages: list[dict[str, Any]]) -> list[str]:
    return [
        block["text"]
        for message in messages
        if message["role"] == "user"
        for block in message["content"]
        if block["type"] == "text"
    ]
