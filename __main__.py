"""The `kopt` command, and `python -m kopt`.

Ctrl-C while kopt is still being imported ends like Ctrl-C later: one line, exit code 130.
"""

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        from kopt.server.cli import main as run

        return run()
    except (KeyboardInterrupt, RuntimeError) as error:
        from kopt.config.errors import is_interrupt

        if not is_interrupt(error):
            raise
        sys.stderr.write("kopt: interrupted\n")
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
