"""What a tool call is asked to do, and the one place that does it with the stages."""
