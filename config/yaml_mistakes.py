"""Mistakes of YAML in words: the line, the place in it, and what to do."""

import yaml

_HINTS = {
    "'\\t'": "indent with spaces, not tabs",
    "mapping values are not allowed": 'put a text that has a colon in quotes: note: "a: b"',
    "while parsing a flow": "a bracket, brace or quote is not closed, or a comma is missing",
}


def yaml_problem(error: yaml.MarkedYAMLError) -> str:
    """Return what is wrong, without the place."""
    words = " ".join(part for part in (error.problem, error.context) if part)
    return f"not YAML: {words}"


def yaml_hint(problem: str) -> str | None:
    """Return what to do about a mistake, where the YAML parser's own words do not say it."""
    return next((hint for part, hint in _HINTS.items() if part in problem), None)


def yaml_message(error: yaml.MarkedYAMLError, text: str, name: str) -> str:
    """Return the mistake in the file `name` as compilers show theirs: line, caret, hint."""
    problem = yaml_problem(error)
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return f"{name}: {problem}"
    lines = text.splitlines()
    # At the end of a file the mark stands behind its last line.
    shown = lines[mark.line] if mark.line < len(lines) else ""
    indent = "".join("\t" if character == "\t" else " " for character in shown[: mark.column])
    excerpt = f"\n    {shown}\n    {indent}^" if shown.strip() else ""
    hint = yaml_hint(problem)
    advice = f"\n  hint: {hint}" if hint else ""
    return f"{name}:{mark.line + 1}:{mark.column + 1}: {problem}{excerpt}{advice}"
