"""The `kopt` command, and `python -m kopt`.

Ctrl-C while kopt is still being imported ends like Ctrl-C later: one line, exit code 130.
"""

import gc
import sys


def main() -> int:
    """Run the command line and return its exit code."""
    # Imports leave no garbage, and each collection would visit all that they have made;
    # `server/lazy_group.py` has it collected again once the command is imported.
    gc.disable()
    try:
        from kopt.config.settings import leave_out_pydantic_plugins
        from kopt.server.cli import main as run

        leave_out_pydantic_plugins()
        return run()
    except (KeyboardInterrupt, RuntimeError) as error:
        from kopt.config.errors import is_interrupt

        if not is_interrupt(error):
            raise
        sys.stderr.write("kopt: interrupted\n")
        return 130
    finally:
        gc.freeze()  # what is left goes with the process: Python would visit it once more


if __name__ == "__main__":
    raise SystemExit(main())
