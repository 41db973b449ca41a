"""`kopt view`: runs as live pages for a browser on this machine."""
