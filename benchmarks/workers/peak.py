"""Runs a command, and prints the seconds that it took and the most memory that it had, in MiB.

Usage: python peak.py COMMAND ...

A process begins with the peak of the one that it was started from, so that has to be a small one: this.
"""

import os
import resource
import sys
import time

start = time.perf_counter()
with open(os.devnull, "w") as nothing:  # noqa: PTH123 - pathlib would make this process larger
    silent = [(os.POSIX_SPAWN_DUP2, nothing.fileno(), 1)]
    process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent)
_, status = os.waitpid(process, 0)
seconds = time.perf_counter() - start
unit = 1 if sys.platform == "darwin" else 1024
print(seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit / 2**20)
sys.exit(os.waitstatus_to_exitcode(status))
