"""``advisor plan``."""

import math
from typing import Any

import click

from advisor import wiring
from advisor.cli import options
from advisor.records.plan import DeviceOption


def _device_options(
    _context: click.Context, _option: click.Parameter, value: str
) -> tuple[DeviceOption, ...]:
    return tuple(_device_option(part.strip()) for part in value.split(","))


def _device_option(text: str) -> DeviceOption:
    number, _, price = text.partition("@")
    try:
        devices, own_price = int(number), float(price) if "@" in text else None
    except ValueError:
        devices, own_price = 0, None
    if devices < 1 or not 0 <= (own_price or 0) < math.inf:
        raise click.BadParameter(
            f"{text!r} is not a number of devices from 1, such as 4, or 4@1.8 with its own price."
        )
    return DeviceOption(devices, own_price)


def _share(_context: click.Context, _option: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    try:
        share = float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
    except ValueError:
        share = math.nan
    if not 0 <= share < 1:
        raise click.BadParameter(f"{value!r} is not a share of a step from 0% to below 100%, such as 10%.")
    return share


@click.command("plan")
@click.argument("name", required=False)
@click.option(
    "--devices",
    "device_options",
    metavar="N[@PRICE],…",
    default="1,2,4,8",
    show_default=True,
    callback=_device_options,
    help="Numbers of devices; 4@1.8 gives four their own price of a device-hour.",
)
@click.option(
    "--synchronization",
    "assumed_share",
    metavar="SHARE",
    callback=_share,
    help="Share of a step that several devices wait for one another, such as 10% (as measured, else none).",
)
@click.option(
    "--price",
    "price_per_device_hour",
    type=options.FiniteNumber(min=0),
    help="Price of a device-hour (that of the advice).",
)
@click.option("--currency", help="Currency of the price (that of the advice).")
@click.option(
    "--power",
    "power_w",
    type=options.FiniteNumber(min=0),
    help="Watts that one device draws (those of the advice).",
)
@options.storage
@options.output
def command(
    name: str | None,
    device_options: tuple[DeviceOption, ...],
    assumed_share: float | None,
    storage: str,
    format_: str,
    quiet: bool,
    **made: Any,
) -> None:
    """Say what other numbers of devices and prices would give.

    Rests on what is recorded of the workload called NAME, by default of the one used last, and measures
    nothing. What lies outside of what was measured is extrapolated and marked.
    """
    from advisor.reporting.plan import plan_csv, plan_json, plan_text

    answer = wiring.what_if(
        name, device_options, storage=storage, assumed_share=assumed_share, prices=options.given(made)
    )
    options.show(format_, answer, plan_text, plan_json, plan_csv)
