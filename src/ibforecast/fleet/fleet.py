"""A fleet on disk: one folder per member with its model and its outcome, a document and a report over all."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ibforecast._version import __version__
from ibforecast.core import document
from ibforecast.core.errors import DataError, IBForecastError, ModelFileError, UsageError
from ibforecast.core.files import sha256, to_json, write_atomically
from ibforecast.core.workers import HERE, Workers
from ibforecast.data.sources import SUFFIXES, kind_for_files, to_native
from ibforecast.data.tables import write
from ibforecast.fleet.members import Member, members_of
from ibforecast.fleet.work import Files, Outcome, column_names, failure, fit_member, forecast_member
from ibforecast.forecaster import IBForecaster
from ibforecast.zoo.recipes import OWN, Recipe
from ibforecast.zoo.saved import put_in_place

FORMAT, VERSION = "ibforecast.fleet", 1
MEMBER_FORMAT = "ibforecast.fleet.member"
DOCUMENT, REPORT, MEMBER, MEMBERS = "fleet.json", "fleet.csv", "member.json", "members"

OnMember = Callable[[Outcome, int], None]
"""Told of each outcome as it comes, and of how many members there are."""


@dataclass(frozen=True)
class Forecasts:
    """The forecasts of a fleet by member, and what became of every member."""

    parts: dict[str, pa.Table]
    outcomes: tuple[Outcome, ...]

    def table(self) -> Any:
        """All forecasts as one tidy table, in pandas where it is installed: one row per member, step and channel.

        The column `channel` is left out where every member has only one. Times of different kinds become ISO texts. A
        name that the table's own id or time has already gets an underscore.
        """
        return to_native(self._stacked(), kind_for_files())

    def save(self, path: str | Path) -> None:
        """Write one table (.csv, .csv.gz, .parquet), or else a folder with a Parquet file per member."""
        path = Path(path)
        if path.name.lower().endswith(SUFFIXES):
            write(self._stacked(), path)
            return
        for outcome in self.outcomes:
            file = path / f"{outcome.folder}.parquet"
            if outcome.name in self.parts:
                write(self.parts[outcome.name], file)
            else:
                file.unlink(missing_ok=True)  # of an earlier forecast

    def _stacked(self) -> pa.Table:
        if not self.parts:
            raise DataError(
                "a fleet must have a forecast to give", "none, because all of its members failed", "see their messages"
            )
        parts = list(self.parts.values())
        if len({part.column_names[1] for part in parts}) > 1:
            names = column_names(parts[0].column_names[0], "time")
            parts = [part.rename_columns(names) for part in parts]
        if len({part.field(1).type for part in parts}) > 1:
            parts = [part.set_column(1, part.column_names[1], _texts(part.column(1))) for part in parts]
        stacked = pa.concat_tables(parts)
        several = any(outcome.channels not in (None, 1) for outcome in self.outcomes)
        return stacked if several else stacked.remove_column(2)


class Fleet:
    """A folder that holds a model for every member.

    A member has a model of its own, and nothing in common with the others but the settings: its forecasts, its
    explanations and its budget are about its own past, it can be added, refitted or fail without touching anyone, and
    any number can be fitted side by side. Series that should read each other belong into one table instead, as
    channels.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def fit(
        self,
        tables: Any,
        forecaster: IBForecaster,
        engine: Workers = HERE,
        on_member: OnMember = lambda outcome, count: None,
    ) -> tuple[Outcome, ...]:
        """Fit a copy of the forecaster to every member that is not fitted yet, or whose table or settings changed.

        `tables` is a folder of tables; one long table (a path, or pandas, polars, pyarrow) with an id column, its
        channels the columns named `channels` or else `target`; or a mapping from names to tables. A member that fails
        is listed among the outcomes, stops no other, keeps the model it had, and is tried again next time. A killed
        run loses at most the members under way: the same call goes on from there.
        """
        members = members_of(tables, forecaster.id)
        if members.cut:
            forecaster = forecaster.replace(channels=forecaster.channels or (forecaster.target,))
        identity = _identity(forecaster)
        self._begin(forecaster)
        outcomes: dict[str, Outcome] = {}

        def note(outcome: Outcome) -> None:
            outcomes[outcome.name] = outcome
            on_member(outcome, len(members))

        def due() -> Iterator[Member]:
            for member in members:
                kept = self._kept(member, sha256(f"{identity}/{member.sha256}".encode()))
                if kept is None:
                    yield member
                else:
                    note(kept)

        try:
            for member, done, lost in engine.run(due(), partial(fit_member, forecaster=forecaster)):
                outcome, files = done or (failure(member, lost), {})
                self._keep(member, outcome, files, sha256(f"{identity}/{member.sha256}".encode()))
                note(outcome)
        finally:
            report = [outcomes[name] for name in members.readers if name in outcomes]
            self._report(report)
        return tuple(report)

    def predict(
        self,
        tables: Any,
        at: Any = None,
        *,
        budget: float | None = None,
        engine: Workers = HERE,
        on_member: OnMember = lambda outcome, count: None,
    ) -> Forecasts:
        """Forecast what follows every member's table, or the moment `at` in it; `tables` as in `fit`.

        A member without a model, or whose table cannot be forecast from, is listed among the outcomes.
        """
        id = self._content()["settings"]["id"]
        members = members_of(tables, id)
        outcomes: dict[str, Outcome] = {}
        parts: dict[str, pa.Table] = {}

        def note(outcome: Outcome) -> None:
            outcomes[outcome.name] = outcome
            on_member(outcome, len(members))

        def jobs() -> Iterator[tuple[Member, Files]]:
            for member in members:
                try:
                    yield member, self._files(member)
                except IBForecastError as error:
                    note(failure(member, str(error)))

        work = partial(forecast_member, id=id, at=at, budget=budget)
        for (member, _), done, lost in engine.run(jobs(), work):
            outcome, forecast = done or (failure(member, lost), None)
            if forecast is not None:
                parts[member.name] = forecast
            note(outcome)
        order = [name for name in members.readers if name in outcomes]
        return Forecasts({name: parts[name] for name in order if name in parts}, tuple(outcomes[n] for n in order))

    def model(self, name: str, device: str = "auto") -> IBForecaster:
        """The fitted model of one member: explain it, evaluate it, audit it."""
        member = Member(name, None)
        self._files(member)
        return IBForecaster.load(self._home(member), device)

    def _home(self, member: Member) -> Path:
        return self.folder / MEMBERS / member.folder

    def _kept(self, member: Member, identity: str) -> Outcome | None:
        """The outcome of an earlier run, where it was a fit with the same settings to the same table."""
        record = self._record(member)
        if record.pop("identity", None) != identity or record["state"] != "fitted":
            return None
        return replace(Outcome(**record), state="kept")

    def _keep(self, member: Member, outcome: Outcome, files: Files, identity: str) -> None:
        """Put model and outcome in the member's folder, which appears whole; a failure does not replace a model."""
        home = self._home(member)
        if outcome.state == "failed" and self._record(member).get("state") == "fitted":
            return
        home.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=home.parent, prefix=f".{home.name}."))
        try:
            for name, content in files.items():
                write_atomically(temporary / name, content)
            record = asdict(outcome) | {"identity": identity}
            write_atomically(temporary / MEMBER, document.write(MEMBER_FORMAT, VERSION, record).encode())
            temporary.chmod(0o755)
            put_in_place(temporary, home)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _record(self, member: Member) -> dict[str, Any]:
        try:
            return document.read((self._home(member) / MEMBER).read_bytes(), MEMBER_FORMAT, VERSION)
        except (OSError, DataError):  # not there, or not as it was written: fitted again
            return {}

    def _files(self, member: Member) -> Files:
        record, home = self._record(member), self._home(member)
        if record.get("state") != "fitted":
            why = f"its fit failed: {record['message']}" if record else "it is not in this fleet"
            raise ModelFileError(
                "a member must be fitted before it is used", f"{member.name!r}: {why}", "fit the fleet with its table"
            )
        return {path.name: path.read_bytes() for path in home.iterdir() if path.name != MEMBER}

    def _content(self) -> dict[str, Any]:
        """The settings of the fleet, and which version wrote them."""
        try:
            return document.read((self.folder / DOCUMENT).read_bytes(), FORMAT, VERSION, ModelFileError)
        except (OSError, ModelFileError) as error:
            raise ModelFileError(
                f"a fleet is a folder with a whole {DOCUMENT}", f"{self.folder}: {error}", "name the folder of a fleet"
            ) from error

    def _begin(self, forecaster: IBForecaster) -> None:
        """Write the document over all, and clear away what a killed run left half done."""
        if self.folder.exists() and not (self.folder / DOCUMENT).is_file() and any(self.folder.iterdir()):
            raise UsageError("only a fleet can be continued", f"{self.folder}, which is none", "choose another")
        content = {"ibforecast_version": __version__, "settings": forecaster.document()}
        write_atomically(self.folder / DOCUMENT, document.write(FORMAT, VERSION, content).encode())
        for half in (self.folder / MEMBERS).glob(".*"):
            shutil.rmtree(half, ignore_errors=True)

    def _report(self, outcomes: Sequence[Outcome]) -> None:
        rows = [asdict(outcome) for outcome in outcomes]
        if rows:
            write(pa.Table.from_pylist(rows), self.folder / REPORT)


def _texts(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times of whatever kind as ISO texts, to the second where they are whole ones."""
    if pa.types.is_timestamp(times.type):
        with suppress(pa.ArrowInvalid):  # there are parts of a second
            times = times.cast(pa.timestamp("s", times.type.tz))
    return times.cast(pa.string())


def _identity(forecaster: IBForecaster) -> str:
    """Fingerprint of the settings, with what the recipe says instead of its name."""
    settings = {name: value for name, value in forecaster.document().items() if name not in ("recipe", "device")}
    if isinstance(forecaster.recipe, Recipe):
        return sha256([to_json(settings), forecaster.recipe.sha256.encode()])
    return sha256([to_json(settings), OWN.text(forecaster.recipe).encode()])
