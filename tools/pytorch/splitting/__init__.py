"""An imported network cut into regions, each a problem of its own with a weight and a count."""
