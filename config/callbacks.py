"""The default of callbacks that a caller leaves out."""


def ignore(_: object) -> None:
    """Do nothing."""
