"""The work of tool calls: its requests, and the one place that does it with the stages."""
