"""Owns the targets: ratios within one run, each next to what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tests.bench.measure import NOTHING, Measured
from tests.bench.scenarios import history, memory, streaming, throughput, turns

All = Mapping[str, Measured]


@dataclass(frozen=True)
class Judged:
    """A target and what came of it.

    Attributes:
        target: in words.
        measured: in words.
        verdict: "met", "missed" or "not measured".
    """

    target: str
    measured: str
    verdict: str


@dataclass(frozen=True)
class Target:
    """What is to hold.

    Attributes:
        scenario: that measures it.
        text: in words.
        measure: returns a number, and how it reads.
        limit: that the number may not exceed.
    """

    scenario: str
    text: str
    measure: Callable[[Measured], tuple[float, str] | None]
    limit: float

    def judge(self, everything: All) -> Judged:
        """Compares; what no contender delivered is not measured."""
        found = self.measure(everything[self.scenario]) if self.scenario in everything else None
        if found is None:
            return Judged(self.text, NOTHING, "not measured")
        return Judged(self.text, found[1], "met" if found[0] <= self.limit else "missed")


def judge(everything: All) -> list[Judged]:
    """Judges all targets of the scenarios that were run."""
    return [target.judge(everything) for target in TARGETS if target.scenario in everything]


def _ratio(case: str, metric: str, other: str) -> Callable[[Measured], tuple[float, str] | None]:
    def measure(measured: Measured) -> tuple[float, str] | None:
        ratio = measured.ratio(case, metric, "ours", other)
        return None if ratio is None else (ratio.median, f"{ratio.median:.2f} x")

    return measure


def _over_plain(measured: Measured) -> tuple[float, str] | None:
    ours, plugin = (measured.ratio("effects_4", turns.TURN, one, "plain") for one in ("ours", "plugin"))
    if ours is None or plugin is None:
        return None
    text = f"ours {ours.median:.1f} x plain, plugin {plugin.median:.1f} x plain"
    return ours.median / plugin.median, text


def _faster(case: str) -> Callable[[Measured], tuple[float, str] | None]:
    def measure(measured: Measured) -> tuple[float, str] | None:
        ratio = measured.ratio(case, throughput.RATE, "ours", "plugin")
        return None if ratio is None else (-ratio.median, f"{ratio.median:.2f} x")

    return measure


def _first_token(measured: Measured) -> tuple[float, str] | None:
    values = [measured.median(streaming.ONE, streaming.FIRST, one) for one in ("ours", "plain")]
    if values[0] is None or values[1] is None:
        return None
    return values[0] - values[1], f"{values[0]:.0f} ms, plain {values[1]:.0f} ms"


def _value(case: str, metric: str, unit: str) -> Callable[[Measured], tuple[float, str] | None]:
    def measure(measured: Measured) -> tuple[float, str] | None:
        value = measured.median(case, metric, "ours")
        return None if value is None else (value, f"{value:,.2f} {unit}")

    return measure


def _per_effect(measured: Measured) -> list[float]:
    cases = [history.case_of(length) for length in history.LENGTHS]
    found = [measured.median(case, history.PER_EFFECT, "ours") for case in cases]
    return [value for value in found if value is not None]


def _largest_per_effect(measured: Measured) -> tuple[float, str] | None:
    values = _per_effect(measured)
    return (max(values), f"{max(values):,.0f} bytes") if values else None


def _growth_per_effect(measured: Measured) -> tuple[float, str] | None:
    values = _per_effect(measured)
    return (max(values) / min(values), f"{min(values):,.0f} to {max(values):,.0f} bytes") if values else None


def _growth(role: str) -> Callable[[Measured], tuple[float, str] | None]:
    def measure(measured: Measured) -> tuple[float, str] | None:
        metric = memory.resident(role)
        before = measured.median(memory.after(memory.TURNS // 4), metric, "ours")
        after = measured.median(memory.after(memory.TURNS), metric, "ours")
        if before is None or after is None:
            return None
        return (
            after / before,
            f"{before:.0f} MB after {memory.TURNS // 4:,}, {after:.0f} MB after {memory.TURNS:,}",
        )

    return measure


TARGETS: Final = (
    Target("turns", "turn of 4 no-op effects over plain: at most the plugin's", _over_plain, 1.0),
    Target("history", "turn at 200 messages: at most 0.4 x the plugin's",
           _ratio(history.case_of(200), history.TURN, "plugin"), 0.4),
    Target("history", "turn at 1,500 messages: within 3 x of plain",
           _ratio(history.case_of(1500), history.TURN, "plain"), 3.0),
    Target("history", "history per effect: at most 1.2 KB", _largest_per_effect, 1200),
    Target("history", "history per effect: constant in conversation length (2 %)", _growth_per_effect, 1.02),
    *(Target("throughput", f"turns/s, {case}: at least 1.2 x the plugin's", _faster(case), -1.2)
      for case in (throughput.case_of(1, 20), throughput.case_of(2, 20))),
    Target("streaming", "first token: within 60 ms of plain's", _first_token, 60),
    Target("streaming", "token to client, 100 streams, p50: under 25 ms",
           _value(streaming.MANY, streaming.P50, "ms"), 25),
    Target("streaming", "token to client, 100 streams, p99: under 100 ms",
           _value(streaming.MANY, streaming.P99, "ms"), 100),
    *(Target("memory", f"idle {role}: under 1 % of a core", _value(memory.IDLE, memory.cpu(role), "%"), 1)
      for role in ("worker", "api")),
    *(Target("memory", f"memory of the {role} flat over 2,000 turns (5 %)", _growth(role), 1.05)
      for role in ("worker", "api")),
)  # fmt: skip
