"""What a run will do and cost, before it is begun: computed from settings, prompts and prices."""
