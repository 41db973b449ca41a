"""Files of production libraries as chunks: one function or struct each, tagged in plain words."""
