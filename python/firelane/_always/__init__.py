"""Always on: records a whole job within a budget, keeps the newest steps in detail, and looks back at incidents.

    import firelane
    always = firelane.always_on("run", budget=0.005)      # steps are detected as by `firelane record`
    ...                                                    # train; always.step() where nothing can be detected
    always.stop()

Every step is timed. Now and then a window of steps is recorded in detail, as often as the budget allows (budget.py);
they lie in a ring on disk (ring.py). A slow step, a hang, growing memory, an exception, a signal or a request makes an
incident (triggers.py): what is there is kept, and the next steps are recorded. run.py puts it together; outside.py is
what others see of it while it runs (metrics), and how they ask for more; `firelane why` reads the folder (src/always).
"""

from __future__ import annotations

from .front import always_on
from .run import Always

__all__ = ["Always", "always_on"]
