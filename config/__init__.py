"""Settings, environment variables, GPU data sheets and errors; imports nothing of kopt."""
