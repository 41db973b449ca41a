"""The self-test: candidates that must be refused and candidates that must pass, and their check."""
