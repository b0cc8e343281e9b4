"""The chapters of a dossier, as HTML made from its facts."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import groupby
from math import isfinite
from shlex import quote

from ibforecast.audit import MIN_FIDELITY
from ibforecast.core.receipt import COARSE, FINE, Part, decimals_of, rounded, shown
from ibforecast.core.words import count_of, percent
from ibforecast.dossier.facts import ChannelAccuracy, ChannelReading, Facts, Setting
from ibforecast.dossier.headings import HEADINGS
from ibforecast.dossier.limits import general, weaknesses
from ibforecast.drivers import source_in_words
from ibforecast.plots.labels import MANY
from ibforecast.plots.printed import Chapter, code, heading, items, page, pairs, paragraph, picture, table
from ibforecast.plots.scene import scene_of
from ibforecast.plots.svg import to_svg

FEW_PLACES = 6
"""Places of a channel are listed up to this number if the model chooses them in every window."""

LARGEST = 12
"""How many amounts of a receipt are listed one by one; the others are added up."""

FEW_SOURCES = 5
"""How many sources of a channel are listed."""

UNITS = "Numbers are in the units of the table unless they are said to be standardised."

PROMISES = {
    "sealed": (
        "Mask, level, scale and forecast are computed from the values that were read, and from nothing else.",
        "The claim has no condition. The mask was learned in training and is the same for every window.",
    ),
    "choosing": (
        "Given the mask, level, scale and forecast are computed from the values that were read, and from nothing else.",
        "The claim has one condition. A small network looks at the whole window to choose what is read, so an unread "
        "value can change the forecast by changing that choice.",
    ),
    "conditional": (
        "Given the disclosed context and the mask, the forecast is computed from the open tokens and from nothing "
        "else.",
        "The claim has two conditions. Mask, level and scale are computed from the whole window, so an unread value "
        "can "
        "change the forecast through them.",
    ),
}


def to_html(facts: Facts) -> str:
    """Return the facts as one HTML document."""
    chapters = (
        Chapter("Intended use and what the model is", tuple(_use(facts))),
        Chapter("Data and splits", tuple(_data(facts))),
        Chapter("Training and selection", tuple(_training(facts))),
        Chapter("Accuracy against naive forecasts", tuple(_accuracy(facts))),
        Chapter("Coverage of intervals", tuple(_coverage(facts))),
        Chapter("Budget and what is read", tuple(_reading(facts))),
        Chapter("Audit and certificate", tuple(_audit(facts))),
        Chapter("Drivers", tuple(_drivers(facts))),
        Chapter("A worked example", tuple(_example(facts))),
        Chapter("Limits and known weaknesses", tuple(_limits(facts))),
        Chapter("How to replay a decision", tuple(_replay(facts))),
        Chapter("Headings of two frameworks", tuple(_headings())),
    )
    count = len(weaknesses(facts))
    under = (
        f"Model {facts.replay.model}, weights {facts.use.weights_sha256[:12]}, fitted to {facts.data.name}.",
        f"Made {facts.audit.finished} by ibforecast {facts.audit.ibforecast_version}. {UNITS}",
        f"The measurements show {count} weakness{'' if count == 1 else 'es'}: chapter 10.",
    )
    return page(f"Model dossier: {facts.replay.model}", under, chapters)


# --- Chapters ---


def _use(facts: Facts) -> Iterator[str]:
    use = facts.use
    yield heading("Intended use")
    if use.purpose:
        yield paragraph(use.purpose)
    else:
        yield paragraph("Not stated. The owner of the model must state it (--purpose).", warn=True)
    yield heading("The model")
    what = f"It forecasts {_listed(use.targets)}, {use.horizon} steps of {use.frequency} ahead"
    also = f", and also reads {_listed(use.past)}" if use.past else ""
    ahead = f" It uses {_listed(use.covariates)} as known ahead." if use.covariates else ""
    yield paragraph(f"{what}, from the last {use.look_back} steps{also}.{ahead}")
    sum_of = "An additive sum: each value that is read adds its own amount." if use.additive else "A neural network."
    yield pairs(
        {
            "kind": use.claim,
            "readout": sum_of,
            "budget": f"at most {percent(use.budget)} of a window is read: {use.allowance} of {use.tokens} tokens of "
            f"{use.patch_len} step{'s' if use.patch_len > 1 else ''}"
            + ("; it can be changed in use" if use.any_budget else ""),
            "cycles": " and ".join(map(str, use.cycles)) + " steps",
            **({"naive forecasts blended in": "; ".join(use.anchors)} if use.anchors else {}),
            **({"limits of forecasts": "; ".join(use.limits)} if use.limits else {}),
            "weights (sha256)": use.weights_sha256,
        }
    )
    yield heading("The promise and its limits")
    promise, condition = PROMISES[use.claim]
    yield paragraph(promise)
    yield paragraph(condition)
    yield paragraph(
        "Not promised: that the values read are causes, that the choice of places is a good one, that another machine "
        "computes the same last bits, and that intervals cover later data."
    )


def _data(facts: Facts) -> Iterator[str]:
    data, use = facts.data, facts.use
    yield pairs(
        {
            "table": data.name,
            "fingerprint (sha256)": f"{data.sha256}, of channel names and values",
            "rows": f"{data.rows:,}, {data.first} to {data.last}, in steps of {use.frequency}",
            "time zone": data.zone or "none stated",
            "uneven times": {"error": "refused", "by_row": "rows counted", "fill": "gaps filled with missing values"}[
                data.irregular
            ],
            "missing values": f"{data.missing:,}"
            + (f"; also written as {_listed(data.missing_values)}" if data.missing_values else "")
            + (f"; empty cells are read as 0 at {', '.join(data.zero_at)}" if data.zero_at else ""),
        }
    )
    yield heading("Parts, in order of time")
    yield table(
        ("part", "first", "last", "rows", "missing", "windows", "usable", "sha256"),
        (
            (
                part.part,
                part.first,
                part.last,
                f"{part.rows:,}",
                f"{part.missing:,}",
                f"{part.windows:,}",
                f"{part.usable:,}",
                part.sha256[:16],
            )
            for part in data.parts
        ),
        texts=3,
    )
    yield paragraph(
        "A usable window has a value of every channel in the places that are read, and in its target. The model was "
        "trained on the first part, selected on the second. The third had no part in that.",
        quiet=True,
    )
    yield heading("Channels")
    yield table(
        ("channel", "role", "missing", "longest gap", "smallest", "largest", "mean (train)", "spread (train)"),
        (
            (
                row.channel,
                row.role,
                f"{row.missing:,}",
                f"{row.longest_gap:,}",
                *(_rounded(value, row.spread) for value in (row.smallest, row.largest, row.mean, row.spread)),
            )
            for row in data.channels
        ),
        texts=2,
    )


def _training(facts: Facts) -> Iterator[str]:
    training, contest = facts.training, facts.training.contest
    outcome = (
        training.no_contest or "none: the recipe decides whether the model looks at a window to choose what it reads"
    )
    if contest:
        outcome = (
            f"{contest.winner} won: validation error {contest.sealed:.4g} sealed, {contest.choosing:.4g} choosing; "
            "choosing "
            f"had to be better by {percent(contest.margin)}"
        )
        if contest.doubt:
            outcome += f", and was, but the stronger promise is kept by rule: {contest.doubt}"
        if contest.additive is not None:
            outcome += f"; the error of an additive readout was {contest.additive:.4g} times that of the sealed reader"
    yield pairs(
        {
            "recipe": training.recipe,
            "recipe (sha256)": training.recipe_sha256,
            "seed": str(training.seed),
            "windows": f"{training.windows:,}",
            "epochs": f"{training.epochs}, of which number {training.best_epoch} had the smallest validation error",
            "validation error": f"{training.validation_error:.4g} (MSE, standardised)",
            "contest": outcome,
            "time": f"{training.seconds:.3g} s on {training.device}",
            "versions": _versions(training.versions),
        }
    )
    yield heading("Settings that differ from their defaults, or have none")
    yield table(("setting", "value"), ((each.name, each.value) for each in training.settings), texts=2)


def _accuracy(facts: Facts) -> Iterator[str]:
    accuracy, spread = facts.accuracy, _spreads(facts)
    yield paragraph(
        f"On {accuracy.windows:,} of {accuracy.usable:,} usable windows of the {accuracy.split} part, evenly spaced, "
        "over all "
        f"{facts.use.horizon} steps ahead. The naive forecasts repeat the last value or as many of the last "
        "steps as are named, on the same windows and targets; the best of them is shown, by each measure."
    )
    yield table(
        ("channel", "MAE model", "best naive", "it repeats", "RMSE model", "best naive", "it repeats"),
        (_accuracy_of(row, spread[row.channel]) for row in accuracy.channels),
    )
    worse = [row for row in accuracy.channels if row.worse]
    if not worse:
        yield paragraph("The model is at least as good as every naive forecast in every channel, by MAE and by RMSE.")
        return
    yield paragraph(
        f"The model is worse than a naive forecast in {len(worse)} of {len(accuracy.channels)} channels:", warn=True
    )
    yield items(f"{row.channel}: worse than {', '.join(row.worse)}" for row in worse)


def _accuracy_of(row: ChannelAccuracy, spread: float) -> tuple[str, ...]:
    by_mae, by_rmse = row.best
    return (
        *(row.channel, _rounded(row.mae, spread), _rounded(by_mae.mae, spread), by_mae.name),
        *(_rounded(row.rmse, spread), _rounded(by_rmse.rmse, spread), by_rmse.name),
    )


def _coverage(facts: Facts) -> Iterator[str]:
    coverage, spread = facts.coverage, _spreads(facts)
    if coverage is None:
        yield paragraph(
            "The model is not calibrated for any of the usual levels, so there are no intervals to measure."
        )
        return
    yield paragraph(
        f"Split conformal intervals, calibrated on {count_of(coverage.calibrated_on, 'window')}, with forecasts from "
        f"{coverage.since} on. "
        "Each cell says how often the truth was inside, and how wide the interval was on average."
    )
    levels = list(dict.fromkeys(row.level for row in coverage.channels))
    by_channel = {
        name: [row for row in coverage.channels if row.channel == name]
        for name in dict.fromkeys(row.channel for row in coverage.channels)
    }
    yield table(
        ("channel", *(text for level in levels for text in (f"{level:g} %: inside", "width"))),
        (
            (name, *(text for row in rows for text in (_share(row.covered), _rounded(row.width, spread[name]))))
            for name, rows in by_channel.items()
        ),
    )


def _reading(facts: Facts) -> Iterator[str]:
    audit, use = facts.audit, facts.use
    yield paragraph(
        f"The budget allows {percent(use.budget)} of a window. On the measured windows {_share(audit.open_rate)} "
        "was read on "
        f"average, and at most {_share(audit.largest_open_rate)}."
    )
    yield table(
        ("channel", "steps back (0: the newest)", "values read", "share of all read"),
        (
            (row.channel, _places(row, use.claim == "sealed"), f"{row.values:.4g}", _share(row.share))
            for row in facts.reading
        ),
        texts=2,
    )


def _audit(facts: Facts) -> Iterator[str]:
    audit = facts.audit
    shortfalls = audit.shortfalls(MIN_FIDELITY)
    if shortfalls:
        yield paragraph(f"NOT passed, with a bar of {MIN_FIDELITY:g}.", warn=True)
        yield items(map(str, shortfalls))
    else:
        yield paragraph(f"Passed, with a bar of {MIN_FIDELITY:g}.")
    kinds = {"own map, gates run again": audit.fidelity, "own map, mask held": audit.frozen, "chance": audit.chance}
    yield table(
        ("map", "score", "comprehensiveness", "sufficiency"),
        (
            (name, *map(_score, (each.clipped_score, each.clipped_comprehensiveness, each.sufficiency)))
            for name, each in kinds.items()
        ),
    )
    yield pairs(
        {
            "windows": f"{audit.windows:,} of {audit.available:,} ({audit.split})",
            "certificate": f"{audit.changed_bits} bits changed, context and mask held: {audit.compared:,} forecast "
            f"values compared, {audit.scrambled:,} closed points scrambled",
            "end to end": f"other values in closed places cause {_share(audit.relative)} of the squared shift that "
            f"deleting everything causes; {_share(audit.masks_changed)} of masks change",
            "different masks": f"{audit.masks:,}"
            + ("; one mask for all windows, so the score says nothing about its choice" if audit.masks == 1 else ""),
            "nothing read in": f"{audit.empty:,} windows" if audit.empty else "",
            "errors": f"MSE {_score(audit.mse)}, MAE {_score(audit.mae)} (standardised)",
        }
    )
    yield paragraph(
        "The score is comprehensiveness less sufficiency: 1 if a forecast depends on what was read and on nothing "
        "else. The "
        "certificate counts the bits of forecasts that changed although context and mask were held.",
        quiet=True,
    )


def _drivers(facts: Facts) -> Iterator[str]:
    spread, drivers = _spreads(facts), facts.drivers
    if not any(row.size for row in drivers.rows):
        yield paragraph("No source moves a forecast.")
        return
    yield paragraph(
        "How far each source moves the forecast of a channel from that of the learned profile: the mean size of the "
        "sum of its amounts in receipts, those of all its places at one step ahead, over "
        f"{drivers.windows} evenly spaced windows, and its share of the sizes of all sources. The place is the largest "
        "one."
    )
    listed = []
    for channel, rows in groupby(drivers.sources(), key=lambda row: row.channel):
        for row in [row for row in rows if row.size][:FEW_SOURCES]:
            where = drivers.strongest(channel, row.source).where
            source = source_in_words(row.source, channel)
            listed.append((channel, source, where, _rounded(row.size, spread[channel]), _share(row.share)))
    yield table(("channel", "source", "place", "size", "share"), listed, texts=3)
    notes = [f"Up to {FEW_SOURCES} sources of a channel are listed."]
    if len(drivers.channels) < len(facts.use.targets):
        notes.append(f"Only {len(drivers.channels)} of {len(facts.use.targets)} channels were computed.")
    yield paragraph(" ".join(notes), quiet=True)


def _example(facts: Facts) -> Iterator[str]:
    explained, receipt = facts.example.explained, facts.example.receipt
    scene = scene_of(explained, receipt.channel)  # the picture and the table below it itemise the same forecast
    yield paragraph(f"The newest forecast of the table, made at {explained.at}. Explanation {explained.sha256}.")
    yield picture(to_svg(scene.most_read(MANY)))
    yield heading(f"Receipt of {receipt.channel}, mean over the horizon")
    std = float(explained.units.std[explained.channels.index(receipt.channel)])
    decimals = decimals_of(std, FINE)
    parts = list(receipt.parts(explained))
    listed = sorted((part for part in parts if part.part == "read"), key=lambda part: -abs(part.amount))
    rest = listed[LARGEST:]
    rows = [_entry(part, decimals) for part in parts if part.part == "calendar"]
    rows += [_entry(part, decimals) for part in listed[:LARGEST]]
    if rest:
        total = float(sum(Decimal(repr(part.amount)) for part in rest))
        rows.append(("read", f"{len(rest)} further values", "", shown(total, decimals, "+")))
    rows += [_entry(part, decimals) for part in parts if part.part in ("known ahead", "unread")]
    rows += [_entry(part, decimals) for part in parts if part.part == "limit" and part.amount]
    rows.append(("forecast", receipt.channel, "the sum", shown(receipt.forecast, decimals)))
    yield table(("part", "channel", "time", "amount"), rows, texts=3)
    adds_up = "add up to the forecast to the last digit" if receipt.adds_up else "do NOT add up to the forecast"
    yield paragraph(
        f"The amounts {adds_up}. The calendar is the forecast if every value read had been at its learned profile.",
        quiet=True,
    )
    verification = facts.example.verification
    yield heading("Verification")
    yield paragraph("Every check passed." if verification else "NOT every check passed.", warn=not verification)
    yield table(
        ("check", "result", "what was compared"),
        ((check.name, "ok" if check.passed else "FAILED", check.detail) for check in verification.checks),
        texts=3,
    )


def _limits(facts: Facts) -> Iterator[str]:
    measured = weaknesses(facts)
    yield heading("Measured on this model and table")
    yield items(measured) if measured else paragraph("The measurements in this document show none.")
    yield heading("In general")
    yield items(general(facts))


def _replay(facts: Facts) -> Iterator[str]:
    replay, explained = facts.replay, facts.example.explained
    channel = facts.example.receipt.channel
    model, table_name, at, name = (quote(text) for text in (replay.model, replay.table, explained.at, channel))
    yield paragraph(
        "A decision is replayed from the model's folder, the table and the moment at which the forecast was made, "
        "here for "
        "the worked example. For another decision, change the moment."
    )
    yield code(
        f"ibforecast explain {model} {table_name} --at {at} --channel {name} --out why.json\n"
        f"ibforecast verify {model} why.json --table {table_name}\n"
        f"ibforecast audit {model} {table_name} --split {facts.accuracy.split} --windows {facts.accuracy.windows}\n"
        f"ibforecast evaluate {model} {table_name} --split {facts.accuracy.split}"
    )
    yield paragraph("The receipt, in Python:")
    yield code(
        "from ibforecast import IBForecaster\n\n"
        f"explained = IBForecaster.load({replay.model!r}).explain({replay.table!r}, at={explained.at!r})\n"
        f"print(explained.receipt({channel!r}))"
    )
    yield paragraph(
        f"The explanation of the worked example must have the fingerprint {explained.sha256} where the same bits are "
        "computed, "
        f"and the weights the fingerprint {facts.use.weights_sha256}."
    )
    yield pairs({"made with": _versions(replay.versions), "fitted with": _versions(facts.training.versions)})


def _headings() -> Iterator[str]:
    yield paragraph(
        "No compliance with any law or guidance is claimed. The table says which chapter has material for which "
        "heading, and "
        "what must be written by others. The headings are paraphrased; read the originals, and check which version "
        "applies.",
        warn=True,
    )
    for framework, rows in groupby(HEADINGS, key=lambda row: row.framework):
        yield heading(framework)
        yield table(
            ("heading", "chapters here", "what remains"),
            ((row.heading, ", ".join(map(str, row.chapters)) or "none", row.remains) for row in rows),
            texts=3,
        )


# --- Texts ---


def _rounded(value: float, spread: float) -> str:
    """Return a number with as many decimals as the spread of its channel calls for."""
    if not isfinite(value):
        return "undefined"
    decimals = decimals_of(spread, COARSE) if spread > 0 else COARSE
    return f"{rounded(value, decimals):,.{decimals}f}"


def _share(fraction: float) -> str:
    """Return a fraction as a percentage with one decimal."""
    return f"{100 * fraction:.1f} %" if isfinite(fraction) else "undefined"


def _score(value: float) -> str:
    return f"{value:.3f}" if isfinite(value) else "undefined"


def _spreads(facts: Facts) -> dict[str, float]:
    return {row.channel: row.spread for row in facts.data.channels}


def _entry(part: Part, decimals: int) -> tuple[str, str, str, str]:
    """Return an entry of a receipt as the cells of a row."""
    time = part.start if part.start == part.end else f"{part.start} to {part.end}"
    amount = shown(part.amount, decimals, "-" if part.part == "calendar" else "+")
    return part.part, part.channel, time, amount


def _places(row: ChannelReading, fixed: bool) -> str:
    """Return where a channel is read: every place if they are fixed, and the most frequent ones otherwise."""
    if not row.places:
        return "nothing"
    if fixed:
        return ", ".join(_runs([(place.newest, place.oldest) for place in row.places]))
    most = sorted(row.places, key=lambda place: -place.share)[:FEW_PLACES]
    named = ", ".join(f"{_span(place.newest, place.oldest)} ({_share(place.share)} of windows)" for place in most)
    return f"{named}{f' and {len(row.places) - len(most)} more' if len(row.places) > len(most) else ''}"


def _runs(spans: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yield spans of steps, with neighbours joined."""
    start, end = spans[0]
    for newest, oldest in spans[1:]:
        if newest > end + 1:
            yield _span(start, end)
            start = newest
        end = oldest
    yield _span(start, end)


def _span(newest: int, oldest: int) -> str:
    return str(newest) if newest == oldest else f"{newest} to {oldest}"


def _listed(names: Sequence[object]) -> str:
    listed = ", ".join(map(str, names[:MANY]))
    return f"{listed} and {len(names) - MANY} more" if len(names) > MANY else listed


def _versions(versions: Sequence[Setting]) -> str:
    return ", ".join(f"{each.name} {each.value}" for each in versions)
