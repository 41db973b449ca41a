"""Where MCP clients keep their servers, and how kopt is entered there and taken out again."""
