"""The program of a resident evaluator whose GPU is a twin, or workers that play one."""

import sys

from kopt.server.far import service
from kopt.server.resident.__main__ import main
from support.far_twin import twins_opener, workers_opener

if __name__ == "__main__":
    service.opener = twins_opener if sys.argv[1] == "twin" else workers_opener
    sys.exit(main(*sys.argv[2:]))
