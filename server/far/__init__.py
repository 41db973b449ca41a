"""What runs on the other machine of `--device ssh://...`: one device for one caller."""
