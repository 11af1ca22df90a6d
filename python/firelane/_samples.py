"""Stacks that are sampled beside a recording, as an option: how often a second."""

from __future__ import annotations

from firelane import _trace


def checked_rate(rate: float) -> float:
    """`sample_rate`, 0 for no samples. Raises ValueError for what is no rate, with the words of the other fronts."""
    if isinstance(rate, bool):  # sample_rate=True would be one look a second
        raise ValueError("sample_rate: " + _trace.wrong_rate(float("nan")).replace("nan", str(rate), 1))
    if rate != 0 and (wrong := _trace.wrong_rate(rate)):
        raise ValueError(f"sample_rate: {wrong}")
    return float(rate)
