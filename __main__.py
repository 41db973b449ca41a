"""`python -m kopt`: the same as the `kopt` command."""

from kopt.server.cli import main

raise SystemExit(main())
