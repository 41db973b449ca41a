"""The run file: its tables, one writer, any number of readers, and what lies beside it."""
