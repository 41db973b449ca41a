"""Streamable HTTP: who may call, the limits, and the server."""
