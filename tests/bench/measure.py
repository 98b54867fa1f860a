"""Owns what was measured: values by case, metric and contender, one a round; medians, spreads and ratios of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

NOTHING = "-"  # in tables, where nothing was measured
ORDER = ("ours", "ours, no HTTP", "plain", "plugin", "aegra", "bare")  # of their columns


@dataclass(frozen=True)
class Spread:
    """A median with the least and the greatest value."""

    median: float
    least: float
    greatest: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        """Returns that of one value or more."""
        return Spread(median(values), min(values), max(values))


@dataclass
class Measured:
    """What a scenario measured.

    Attributes:
        notes: sentences on how, which the tables need to be read.
        rounds: (case, metric) → contender → round → value.
        failures: (case, contender) → why there is no value, or not one for each round.
        seconds: that it took.
    """

    notes: Sequence[str] = ()
    rounds: dict[tuple[str, str], dict[str, dict[int, float]]] = field(
        default_factory=dict[tuple[str, str], dict[str, dict[int, float]]]
    )
    failures: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    seconds: float = 0.0

    def add(self, case: str, contender: str, number: int, values: Mapping[str, float]) -> None:
        """Adds a round's values."""
        for metric, value in values.items():
            self.rounds.setdefault((case, metric), {}).setdefault(contender, {})[number] = value

    def fail(self, case: str, contender: str, why: str) -> None:
        """Notes that a contender did not do it."""
        self.failures[case, contender] = why

    def contenders(self) -> list[str]:
        """Returns who was measured, or failed to be."""
        there = {name for values in self.rounds.values() for name in values}
        there |= {name for _, name in self.failures}
        return [name for name in ORDER if name in there]

    def spread(self, case: str, metric: str, contender: str) -> Spread | None:
        """Returns the median of the rounds, if there is any."""
        values = self.rounds.get((case, metric), {}).get(contender)
        return Spread.of(list(values.values())) if values else None

    def ratio(self, case: str, metric: str, contender: str, other: str) -> Spread | None:
        """Returns the median of the ratios of each round, if both were measured in any."""
        values = self.rounds.get((case, metric), {})
        mine, theirs = values.get(contender, {}), values.get(other, {})
        ratios = [mine[number] / theirs[number] for number in mine if theirs.get(number)]
        return Spread.of(ratios) if ratios else None

    def median(self, case: str, metric: str, contender: str) -> float | None:
        """Returns the median, if there is any."""
        found = self.spread(case, metric, contender)
        return None if found is None else found.median


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the value that so large a share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
