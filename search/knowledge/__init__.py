"""The knowledge base: states, techniques, their gains per architecture, and its files."""
