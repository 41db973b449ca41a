"""The MCP face of kopt: tools, replies, resources, prompts and transports."""
