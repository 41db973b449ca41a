"""The command line and, later, the MCP server: wiring of everything else."""
