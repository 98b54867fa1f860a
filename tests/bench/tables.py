"""Owns the bench's tables, in Markdown, and its JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tests.bench.measure import NOTHING, Measured, Spread
from tests.bench.targets import Judged

RATIOS = (("ours", "plain"), ("ours", "plugin"), ("plugin", "plain"), ("ours", "bare"), ("plugin", "bare"))


def of_scenario(name: str, measured: Measured) -> str:
    """Returns a scenario's table: medians (least - greatest) of the rounds, and ratios made round by round."""
    contenders = measured.contenders()
    ratios = [(one, other) for one, other in RATIOS if one in contenders and other in contenders]
    head = ["case", "measured", *contenders, *(f"{one} / {other}" for one, other in ratios)]
    rows = [
        [
            case,
            metric,
            *(_cell(measured, case, metric, contender) for contender in contenders),
            *(_spread(measured.ratio(case, metric, one, other)) for one, other in ratios),
        ]
        for case, metric in measured.rounds
    ]
    failed = [f"- {contender}, {case}: {why}" for (case, contender), why in measured.failures.items()]
    parts = [f"## {name} ({measured.seconds:.0f} s)", _table(head, rows), *measured.notes]
    return "\n\n".join([*parts, *(["\n".join(failed)] if failed else [])])


def of_targets(judged: Iterable[Judged]) -> str:
    """Returns the targets next to what was measured."""
    rows = [[one.target, one.measured, one.verdict] for one in judged]
    return "## targets\n\n" + (
        _table(["target", "measured", ""], rows) if rows else "None for these scenarios."
    )


def as_json(name: str, measured: Measured) -> dict[str, Any]:
    """Returns all that a scenario measured."""
    contenders = measured.contenders()
    return {
        "scenario": name,
        "seconds": round(measured.seconds, 1),
        "notes": list(measured.notes),
        "values": [
            {"case": case, "metric": metric, "contender": contender, "rounds": list(values.values()),
             **asdict(Spread.of(list(values.values())))}
            for (case, metric), of_all in measured.rounds.items()
            for contender, values in of_all.items()
        ],
        "ratios": [
            {"case": case, "metric": metric, "of": one, "to": other, **asdict(ratio)}
            for case, metric in measured.rounds
            for one, other in RATIOS
            if {one, other} <= set(contenders)
            and (ratio := measured.ratio(case, metric, one, other)) is not None
        ],
        "failures": [
            {"case": case, "contender": contender, "why": why}
            for (case, contender), why in measured.failures.items()
        ],
    }  # fmt: skip


def conditions(
    machine: Mapping[str, Any], versions: Mapping[str, Mapping[str, str]], missing: Mapping[str, str]
) -> str:
    """Returns what it was measured on."""
    lines = [", ".join(f"{name} {value}" for name, value in machine.items())]
    for contender, packages in versions.items():
        lines.append(f"{contender}: " + ", ".join(f"{name} {value}" for name, value in packages.items()))
    lines += [f"{contender} was not measured: {why}" for contender, why in missing.items()]
    return "## conditions\n\n" + "\n".join(f"- {line}" for line in lines)


def _cell(measured: Measured, case: str, metric: str, contender: str) -> str:
    found = measured.spread(case, metric, contender)
    if found is None:
        return "fails" if (case, contender) in measured.failures else NOTHING
    return _spread(found)


def _spread(found: Spread | None) -> str:
    if found is None:
        return NOTHING
    if found.least == found.greatest:
        return number(found.median)
    return f"{number(found.median)} ({number(found.least)} - {number(found.greatest)})"


def number(value: float) -> str:
    """Returns a number with three digits that count."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", "---", *["--:"] * (len(head) - 2)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
