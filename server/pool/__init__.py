"""What runs on a Ray cluster for `--device ray...`, and the process that speaks to it."""
