"""One index as a SQLite file: written, opened, asked for lists of chunks."""
