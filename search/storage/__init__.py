"""Where bytes are kept: artifacts by their digest, SQLite transactions."""
