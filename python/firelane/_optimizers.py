"""Follows the steps of optimizers that may exist already, whose classes torch has wrapped before we came.

torch calls a hook at the end of every optimizer's step(), but inside of its own range around it. So the first call of
the hook replaces step() on that object, and from then on its steps end after the range. On the object, because
schedulers put their own step() there, which hides the class's.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any


class OptimizerSteps:
    """Calls `stepped(optimizer)` after each step of an optimizer, from install() to remove()."""

    def __init__(self, stepped: Callable[[Any], None]) -> None:
        self._stepped = stepped
        self._followed: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()  # to the step() that is ours
        self._handle: Any = None
        self._inside = False  # a step() of ours
        self._stepped_inside = False

    def install(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self._handle = register_optimizer_step_post_hook(self._after_step)

    def remove(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.remove()
        for optimizer, ours in list(self._followed.items()):
            if vars(optimizer).get("step") is not ours:
                continue  # somebody has wrapped it since, and calls the original through ours
            if ours.hidden is None:
                del optimizer.step
            else:
                optimizer.step = ours.hidden
        self._followed.clear()

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._inside:
            self._stepped_inside = True  # the step ends when torch's range has ended, too
            return
        if self._handle is not None and optimizer not in self._followed:
            self._follow(optimizer)
        self._stepped(optimizer)

    def _follow(self, optimizer: Any) -> None:
        # Nothing here keeps the optimizer, whose state may be gigabytes, alive for longer than the program does.
        hidden = vars(optimizer).get("step")
        reference = weakref.ref(optimizer)

        @functools.wraps(optimizer.step)
        def followed(*args: Any, **kwargs: Any) -> Any:
            owner: Any = reference()
            step = functools.partial(type(owner).step, owner) if hidden is None else hidden
            outermost, self._inside = not self._inside, True
            try:
                return step(*args, **kwargs)
            finally:
                if outermost:
                    self._inside, has_stepped, self._stepped_inside = False, self._stepped_inside, False
                    if has_stepped:
                        self._stepped(owner)

        followed.hidden = hidden  # type: ignore[attr-defined]
        del followed.__wrapped__  # a bound method, and with it the optimizer
        optimizer.step = followed
        self._followed[optimizer] = followed
