"""The rules of a search: who survives a round, what it tries next, when it ends."""
