"""One file per sub-command of `kopt`, each imported only when it is called."""
