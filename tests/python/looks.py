"""How often `firelane sample` has looked at its program: what a test waits for, however busy the machine is."""

import contextlib
from pathlib import Path


def has_begun(sampler):
    """Whether the process `sampler` has made its first look: it then reads the run time of the program's threads."""
    for file in Path(f"/proc/{sampler}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it opens and closes others before
            if "schedstat" in str(file.readlink()):
                return True
    return False


def looks_by(sampler):
    """Counts up by one a look from its first one on; where it begins says nothing. It sleeps after each."""
    (line,) = (x for x in Path(f"/proc/{sampler}/status").read_text().splitlines() if x.startswith("voluntary_ctxt"))
    return int(line.split()[1])
