"""What kopt has learned: states, techniques, their gains per architecture, and how it is kept."""
