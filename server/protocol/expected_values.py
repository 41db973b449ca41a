"""What a value of a call should have been, in words for a model instead of pydantic's."""

from pydantic_core import ErrorDetails

_WORDS = {
    "int_type": "a whole number is expected",
    "int_parsing": "a whole number is expected",
    "int_from_float": "a whole number is expected",
    "float_type": "a number is expected",
    "float_parsing": "a number is expected",
    "finite_number": "a finite number is expected",
    "bool_type": "true or false is expected",
    "bool_parsing": "true or false is expected",
    "string_type": "a text is expected",
    "tuple_type": "a list is expected",
    "list_type": "a list is expected",
    "dict_type": "an object of names and values is expected",
    "model_type": "an object is expected",
    "model_attributes_type": "an object is expected",
    "greater_than_equal": "at least {ge} is expected",
    "greater_than": "more than {gt} is expected",
    "less_than_equal": "at most {le} is expected",
    "less_than": "less than {lt} is expected",
    "string_too_short": "at least {min_length} characters are expected",
    "string_too_long": "at most {max_length} characters are expected",
    "too_short": "at least {min_length} of them are expected",
    "too_long": "at most {max_length} of them are expected",
    "literal_error": "expected is {expected}",
}
"""By pydantic's type of error; in braces its own numbers."""


def expected(found: ErrorDetails) -> str:
    """Return what was expected in place of the value of a finding."""
    words = _WORDS.get(found["type"])
    if words is None:
        return f"{found['msg'][:1].lower()}{found['msg'][1:]}"
    limits = {
        name: f"{value:g}" if isinstance(value, float) else value
        for name, value in found.get("ctx", {}).items()
    }
    text = words.format(**limits)
    return text.replace(" 1 characters are", " 1 character is").replace(
        " 1 of them are expected", " one is expected"
    )
