"""What `kopt doctor` finds out about this machine, area by area."""
