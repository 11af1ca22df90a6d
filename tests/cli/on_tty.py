#!/usr/bin/env python3
"""Runs a command with a terminal as its stdout, and prints its output with control characters made visible."""

import os
import pty
import sys


def main() -> int:
    stderr = os.dup(2)
    pid, terminal = pty.fork()
    if pid == 0:
        os.dup2(stderr, 2)  # no progress bar, which a slow machine would show
        os.execvp(sys.argv[1], sys.argv[1:])
    written = b""
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # Linux: the other side is closed
            break
        if not data:
            break
        written += data
    _, status = os.waitpid(pid, 0)
    text = written.decode(errors="replace").replace("\r\n", "\n").replace("\x1b", "^[").replace("\r", "^M")
    sys.stdout.write(text)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
