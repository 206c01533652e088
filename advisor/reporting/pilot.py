"""A proposed target: as text, JSON and CSV."""

from collections.abc import Iterator

from rich.console import RenderableType

from advisor.analysis.quantities import count, duration, number
from advisor.records.pilot import Pilot, PilotSeed
from advisor.records.target import Target
from advisor.reporting.advice import spent_sentence
from advisor.reporting.csv_output import written
from advisor.reporting.json_output import Json, plain
from advisor.reporting.render import bullet, command, heading, pairs, paragraph, render, table, value


def as_text(pilot: Pilot, color: bool = False) -> str:
    """Return the proposed target, where to write it, and what it rests on."""
    return render(_parts(pilot), color)


def as_json(pilot: Pilot) -> Json:
    """Return the proposal as plain data."""
    return plain(  # type: ignore[no-any-return]
        {
            "workload": pilot.workload,
            "configuration": pilot.configuration,
            "target": _target(pilot.target),
            "line": study_file_line(pilot.target),
            "batch_size": pilot.batch_size,
            "steps": pilot.steps,
            "time_s": pilot.time_s,
            "max_train_steps": pilot.max_steps,
            "epochs": pilot.epochs,
            "best": pilot.best,
            "seeds": pilot.seeds,
            "initial_value": pilot.initial_value,
            "rule": pilot.rule,
            "caveats": pilot.caveats,
            "spent": pilot.spent,
            "next": pilot.next,
        }
    )


def as_csv(pilot: Pilot) -> str:
    """Return one line per fresh seed."""
    return written(
        {
            **_target(pilot.target),
            "batch_size": pilot.batch_size,
            "max_train_steps": pilot.max_steps,
            "seed": seed.seed,
            "steps": seed.steps,
            "time_s": seed.time_s,
            "late_value": seed.late_value,
            "best_value": seed.best_value,
            **pilot.best,
        }
        for seed in pilot.seeds
    )


def study_file_line(target: Target) -> str:
    """Return the line of a study file that sets ``target``."""
    return f'target = {{ metric = "{target.metric}", {_bound(target)} = {target.value!r} }}'


def _workload_line(target: Target) -> str:
    return f'target=Target("{target.metric}", {_bound(target)}={target.value!r}),'


def _bound(target: Target) -> str:
    return "at_least" if target.maximize else "at_most"


def _target(target: Target) -> Json:
    return {"metric": target.metric, "at_least": target.at_least, "at_most": target.at_most}


def _parts(pilot: Pilot) -> Iterator[RenderableType]:
    yield paragraph(f"Proposed target: {pilot.target}.", "bold")
    yield paragraph(
        f"At batch size {pilot.batch_size:,} it took {count(pilot.steps)} steps and "
        f"{duration(pilot.time_s)} of training, the mean of {len(pilot.seeds)} fresh seeds."
    )
    yield paragraph("")
    yield from (bullet(caveat) for caveat in pilot.caveats)
    yield paragraph("")
    yield paragraph("If you agree, write it into a study file")
    yield command(study_file_line(pilot.target))
    yield paragraph("or into the workload")
    yield command(_workload_line(pilot.target))
    yield paragraph("and run")
    yield command(pilot.next)
    yield heading("What it rests on")
    yield paragraph(
        f"Trainings of {pilot.max_steps:,} steps ({number(pilot.epochs)} epochs) with "
        "the best hyperparameters found:"
    )
    yield pairs((name, value(given)) for name, given in pilot.best.items())
    yield paragraph("")
    columns = ("seed", f"{pilot.target.metric} at two thirds", "best", "steps to it", "time to it")
    yield table(columns, [_row(seed) for seed in pilot.seeds])
    yield paragraph(f"Rule: {pilot.rule}.")
    yield heading("Spent on this answer")
    yield paragraph(spent_sentence(pilot.spent))


def _row(seed: PilotSeed) -> tuple[str, ...]:
    return (
        number(seed.seed),
        f"{seed.late_value:.4g}",
        f"{seed.best_value:.4g}",
        count(seed.steps),
        duration(seed.time_s),
    )
