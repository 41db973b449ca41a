"""A callback for callers that do not want to be told anything."""


def ignore(_: object) -> None:
    """Do nothing."""
