"""What the reading of a damaged index raises; caught where the index can be made again."""


class OwnIndexDamaged(Exception):
    """The index of kopt's own documents is not to be read; `index.py` builds it again."""


class LibraryDamaged(Exception):
    """The library index is not to be read; `library_index/reading.py` makes it again."""


def damage(is_own: bool, reason: object) -> OwnIndexDamaged | LibraryDamaged:
    """Return what to raise for the index of one kind."""
    return OwnIndexDamaged(str(reason)) if is_own else LibraryDamaged(str(reason))
