"""In which state a program is, what applies to it, and what its candidates have taught."""
