"""What other device counts and prices would give, for people, programs and spreadsheets."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO

from rich.console import RenderableType

from advisor.analysis.quantities import count, duration, number, percent
from advisor.records.intervals import Interval
from advisor.records.plan import Extrapolation, MeasuredRange, Scenario, WhatIf
from advisor.records.recommendation import ResourceCost
from advisor.reporting.json_output import Json, plain
from advisor.reporting.render import about_duration, bullet, command, heading, paragraph, render, table

MARKS = {
    Extrapolation.DEVICES: ("d", "the number of devices"),
    Extrapolation.TIME_PER_STEP: ("t", "the batch sizes timed"),
    Extrapolation.STEPS: ("s", "the batch sizes trained"),
}
"""How the table marks what lies outside of what was measured, and what that is."""


def plan_text(answer: WhatIf, color: bool = False) -> str:
    """Return the options as a table, with what is extrapolated marked."""
    return render(_parts(answer), color)


def plan_json(answer: WhatIf) -> Json:
    """Return the answer; intervals as objects, what is not known as None."""
    return plain(  # type: ignore[no-any-return]
        {
            "workload": answer.workload,
            "target": answer.target,
            "measured": answer.measured,
            "synchronization": answer.synchronization,
            "currency": answer.currency,
            "scenarios": [_fields(scenario) for scenario in answer.scenarios],
            "notes": answer.notes,
            "next": answer.next,
        }
    )


def plan_csv(answer: WhatIf) -> str:
    """Return one line per option; an interval takes three columns."""
    rows = [_flat(plain(_fields(scenario))) for scenario in answer.scenarios]
    columns = dict.fromkeys(name for row in rows for name in row)
    stream = StringIO()
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _fields(scenario: Scenario) -> Json:
    cost = scenario.cost
    return {
        "devices": scenario.option.devices,
        "price_per_device_hour": scenario.option.price_per_device_hour,
        "batch_size": scenario.batch_size,
        "time_per_step_s": scenario.time_per_step_s,
        "throughput_examples_per_s": scenario.throughput_examples_per_s,
        "steps": cost and cost.steps,
        "time_to_target_s": cost and cost.time_to_target_s,
        "device_hours": cost and cost.device_hours,
        "money": cost and cost.money,
        "energy_kwh": cost and cost.energy_kwh,
        "speed_up": scenario.speed_up,
        "efficiency": scenario.efficiency,
        "on_pareto_front": scenario.on_pareto_front,
        "extrapolated": scenario.extrapolated,
    }


def _flat(fields: Mapping[str, object]) -> Json:
    row: Json = {}
    for name, value in fields.items():
        if isinstance(value, Mapping):
            row |= {name: value["estimate"], f"{name}_low": value["low"], f"{name}_high": value["high"]}
        else:
            row[name] = " ".join(value) if isinstance(value, list) else value
    return row


def _parts(answer: WhatIf) -> Iterator[RenderableType]:
    yield paragraph(_title(answer), "bold")
    yield paragraph(_basis(answer.measured))
    yield paragraph("")
    if any(scenario.cost for scenario in answer.scenarios):
        yield _time_table(answer.scenarios)
        yield paragraph("")
        yield _cost_table(answer.scenarios, answer.currency)
    else:
        yield _throughput_table(answer)
    yield paragraph(" ".join(_legend(answer.scenarios)))
    yield paragraph("")
    yield from (bullet(note) for note in answer.notes)
    if answer.next:
        yield heading("Next, for time and cost to the target")
        yield command(answer.next)


def _title(answer: WhatIf) -> str:
    if not any(scenario.cost for scenario in answer.scenarios):
        return f"What other numbers of devices would give for the throughput of {answer.workload}."
    goal = answer.target or "the target"
    return f"What other numbers of devices would take for {answer.workload} to reach {goal}."


def _basis(measured: MeasuredRange) -> str:
    low, high = (number(size) if size % 1 else number(int(size)) for size in measured.per_device)
    timed = f"Timed on {measured.devices} × {measured.device_kind} at batch sizes {low} to {high} per device"
    if measured.trained is None:
        return f"{timed}. What lies beyond is extrapolated, and marked."
    smallest, largest = map(number, measured.trained)
    return f"{timed}; trained at {smallest} to {largest}. What lies beyond is extrapolated, and marked."


def _time_table(scenarios: Sequence[Scenario]) -> RenderableType:
    return table(
        ("devices", "batch size", "time to target", "speed-up", "for each", "beyond"),
        [_time_row(scenario) for scenario in scenarios],
        left=("beyond",),
    )


def _time_row(scenario: Scenario) -> tuple[str, ...]:
    cost = scenario.cost
    return (
        _devices(scenario),
        number(scenario.batch_size) if cost else "",
        about_duration(cost.time_to_target_s) if cost else "unknown",
        "" if scenario.speed_up is None else number(scenario.speed_up),
        "" if scenario.efficiency is None else percent(scenario.efficiency),
        _marks(scenario) if cost else "",
    )


def _cost_table(scenarios: Sequence[Scenario], currency: str) -> RenderableType:
    return table(
        ("devices", "price", "device-hours", currency, "kWh"),
        [_cost_row(scenario, scenario.cost) for scenario in scenarios if scenario.cost],
    )


def _cost_row(scenario: Scenario, cost: ResourceCost) -> tuple[str, ...]:
    price = scenario.option.price_per_device_hour
    return (
        _devices(scenario),
        "" if price is None else number(price),
        _about(cost.device_hours),
        _about(cost.money),
        number(cost.energy_kwh.estimate) if cost.energy_kwh else "",
    )


def _devices(scenario: Scenario) -> str:
    return number(scenario.option.devices) + ("*" if scenario.on_pareto_front else " ")


def _about(amount: Interval | None) -> str:
    if amount is None:
        return ""
    return f"{number(amount.estimate)} ({number(amount.low)}–{number(amount.high)})"


def _throughput_table(answer: WhatIf) -> RenderableType:
    return table(
        ("devices", "batch size", "time per step", "examples per s", "beyond"),
        [_throughput_row(scenario) for scenario in answer.scenarios],
        left=("beyond",),
    )


def _throughput_row(scenario: Scenario) -> tuple[str, ...]:
    return (
        number(scenario.option.devices),
        number(scenario.batch_size),
        duration(scenario.time_per_step_s.estimate),
        count(scenario.throughput_examples_per_s.estimate),
        _marks(scenario),
    )


def _marks(scenario: Scenario) -> str:
    return " ".join(MARKS[part][0] for part in scenario.extrapolated)


def _legend(scenarios: Sequence[Scenario]) -> Iterator[str]:
    """Yield what the columns and marks mean that are shown."""
    if any(scenario.on_pareto_front for scenario in scenarios):
        yield "* : no other option is as fast and as cheap."
    if any(scenario.cost for scenario in scenarios):
        yield "Speed-up: over one device, in all and for each device. In brackets: 95 % intervals."
    shown = {part for scenario in scenarios for part in scenario.extrapolated}
    if shown:
        meanings = ", ".join(f"{mark} {words}" for part, (mark, words) in MARKS.items() if part in shown)
        yield f"Beyond what was measured: {meanings}."
