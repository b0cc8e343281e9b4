"""ibforecast demo: from a table to a verified explanation, on embedded data."""

import time
from pathlib import Path

import click

from ibforecast.cli.shared import announce, check_place, deliver, epochs_bar, json_option
from ibforecast.core.files import write_atomically

HORIZON = 24


@click.command("demo")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("demo"), show_default=True, help="Folder to write to."
)
@click.option("--seed", type=click.IntRange(min=0), default=2024, show_default=True)
@json_option
def command(out: Path, seed: int, as_json: bool) -> None:
    """Fit, forecast, explain, draw and verify on a year of a small town's energy that ships with the library.

    \b
    ibforecast demo
    ibforecast demo --out /tmp/demo --json
    """
    import pyarrow as pa

    from ibforecast.data.demo import demo_table
    from ibforecast.data.tables import write
    from ibforecast.forecaster import IBForecaster

    check_place(out / "town.csv")
    begun = time.perf_counter()
    demo = demo_table(seed)
    table = out / "town.csv"
    write(pa.table(demo.columns()), table)
    announce(f"table: {table}, {demo.series.rows} hours of {', '.join(demo.series.channels)}")

    model = IBForecaster(HORIZON, budget=0.2, seed=seed)
    with epochs_bar() as advance:
        model.fit(table, on_epoch=advance)
    model.save(out / "model", overwrite=(out / "model").exists())
    result = model.evaluate(table)
    announce(
        f"model: {out / 'model'}, fitted in {model.fitted.summary.seconds:.0f} s; on {result.windows} test windows "
        f"MSE {result.mse:.3f}, MAE {result.mae:.3f} (standardised), at most {result.largest_open_rate:.1%} read"
    )
    if model.fitted.summary.contest:
        announce(str(model.fitted.summary.contest))

    explanation = model.explain(table, at=demo.moment_before_echo(model.fitted.split.validation_end))
    verification = explanation.verify()
    write_atomically(out / "why.json", explanation.to_json().encode())
    pictures = [str(explanation.plot(out / name)) for name in ("why.png", "why.html")]
    announce(f"\n{explanation.in_words()}\n\n{verification}\n")
    paths = {
        "explanation": str(out / "why.json"),
        "picture": pictures[0],
        "page": pictures[1],
        "model": str(out / "model"),
    }
    announce(f"done in {time.perf_counter() - begun:.0f} s; the explanation is verified")
    deliver(
        paths | {"verified": bool(verification), "mse": result.mse, "mae": result.mae},
        "\n".join(f"{name:<12} {path}" for name, path in paths.items()),
        as_json,
    )
