"""Settings files of MCP clients: kopt is entered there and taken out again."""
