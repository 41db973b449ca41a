"""What is told of a run at its end: figures, charts, a Markdown page and an HTML page."""
