"""Nobody to tell: who takes what a part of kopt says of its work where no one has asked."""


def tell_nobody(_: object) -> None:
    """Do nothing."""
