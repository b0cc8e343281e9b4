"""A fleet on disk: one folder per member with its model and its outcome, and a document and a report of all."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ibforecast._version import __version__
from ibforecast.core import document
from ibforecast.core.devices import computing_with
from ibforecast.core.errors import DataError, IBForecastError, ModelFileError, UsageError
from ibforecast.core.files import sha256, to_json, write_atomically
from ibforecast.core.folders import locked, new_folder, put_in_place, sweep
from ibforecast.core.workers import HERE, Workers
from ibforecast.data.layout import Layout
from ibforecast.data.sources import SUFFIXES, kind_for_files, to_native
from ibforecast.data.tables import Table, write
from ibforecast.fitting import OnEpoch, ignore_epoch
from ibforecast.fleet.members import Member, members_of
from ibforecast.fleet.progress import progress_in
from ibforecast.fleet.together import adopted, fit_together
from ibforecast.fleet.work import (
    ONE,
    Files,
    Job,
    Outcome,
    column_names,
    failure,
    fit_member,
    forecast_member,
    outcome_of,
    read_outcome,
    worst_first,
)
from ibforecast.forecaster import IBForecaster
from ibforecast.settings import Settings
from ibforecast.train.loop import never
from ibforecast.zoo import saved
from ibforecast.zoo.recipes import OWN, Recipe
from ibforecast.zoo.saved import FittedModel
from ibforecast.zoo.stages import forget

FORMAT, VERSION = "ibforecast.fleet", 1
MEMBER_FORMAT = "ibforecast.fleet.member"
DOCUMENT, REPORT, MEMBER, MEMBERS = "fleet.json", "fleet.csv", "member.json", "members"
SHARED = "shared"
"""The folder with the model of a global fleet, for series that it has not seen."""

CHECKPOINT = ".shared.checkpoint"
"""The beginning of the names of the files with the training of a global fleet, which are removed when it ends."""

OnMember = Callable[[Outcome, int], None]
"""Called with each outcome, as soon as it is known, and the number of members."""


@dataclass(frozen=True)
class Forecasts:
    """The forecasts of a fleet by member, and the outcome of every member."""

    parts: dict[str, pa.Table]
    outcomes: tuple[Outcome, ...]

    def table(self) -> Any:
        """Return all forecasts as one long table, in pandas if it is installed: a row per member, step and channel.

        The column `channel` is left out if every member has only one. Times of different types become ISO texts. A
        name that the table's own id or time column has gets an underscore.
        """
        return to_native(self._stacked(), kind_for_files())

    def save(self, path: str | Path) -> None:
        """Write one table (.csv, .csv.gz, .parquet), or, for another path, a folder with a Parquet file per member."""
        path = Path(path)
        if path.name.lower().endswith(SUFFIXES):
            write(self._stacked(), path)
            return
        for outcome in self.outcomes:
            file = path / f"{outcome.folder}.parquet"
            if outcome.name in self.parts:
                write(self.parts[outcome.name], file)
            else:
                file.unlink(missing_ok=True)  # from an earlier forecast

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
    """A folder with a model for every member.

    Members share only the settings. The forecasts, the explanations and the budget of a member are about its own past.
    It can be added, fitted again or fail without any effect on the others, and any number can be fitted at the same
    time. Series that should read each other belong in one table instead, as channels.
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

        `tables` is a folder of tables, a mapping from names to tables, or one long table (a path, or pandas, polars,
        pyarrow) with an id column, whose channels are the columns named `channels` or else `target`. A member that
        fails is listed among the outcomes. It does not stop the others, keeps the model it had, and is tried again next
        time. A killed run loses at most the members under way: the same call continues from there.
        """
        members = members_of(tables, forecaster.id)
        forecaster = _of_parts(forecaster) if members.cut else forecaster
        identity = _identity(forecaster)
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

        with self._begun(forecaster):
            try:
                for member, done, lost in engine.run(due(), partial(fit_member, forecaster=forecaster)):
                    outcome, files = done or (failure(member, lost), {})
                    self._keep(member, outcome, files, sha256(f"{identity}/{member.sha256}".encode()))
                    note(outcome)
            finally:
                report = [outcomes[name] for name in members.readers if name in outcomes]
                self._report(report)
        return tuple(report)

    def fit_global(
        self,
        tables: Any,
        forecaster: IBForecaster,
        on_epoch: OnEpoch = ignore_epoch,
        until: Callable[[], bool] = never,
    ) -> tuple[Outcome, ...]:
        """Fit one model to all members: each gives windows, in the units of its own training rows.

        That suits many short series of one kind, each of which has too little to learn from. `tables` is as in
        `fit`. The members must have the same channels, frequency and zone; others fail. A series too short for three
        parts keeps one horizon to select the best epoch on. One too short for a window is treated as if it had missing
        values before its first row. A fleet is kept unless a table or the settings changed, and a killed run continues.
        Once `until` returns True, training stops and keeps the best so far; the same call continues.
        """
        members = members_of(tables, forecaster.id)
        forecaster = _of_parts(forecaster) if members.cut else forecaster
        listed = list(members)
        identity = sha256("/".join([_identity(forecaster), *(f"{m.name}={m.sha256}" for m in listed)]).encode())
        if not self.unfinished and (kept := self._kept_together(listed, identity)) is not None:
            return kept
        begun, checkpoint = time.perf_counter(), self.folder / CHECKPOINT
        with self._begun(forecaster, together=True), computing_with(ONE):
            fitted = fit_together(listed, forecaster, checkpoint, on_epoch, until)
            fitted.shared.save(self.folder / SHARED, overwrite=True)
            each = (time.perf_counter() - begun) / len(listed)
            outcomes = []
            for member in listed:
                if member.name in fitted.models:
                    outcome, files = _measured(member, *fitted.models[member.name], each)
                else:
                    outcome, files = failure(member, str(fitted.problems[member.name]), each), {}
                self._keep(member, outcome, files, identity)
                outcomes.append(outcome)
            self._report(outcomes)
            if not fitted.shared.summary.stopped:
                forget(checkpoint)
        return tuple(outcomes)

    @property
    def unfinished(self) -> bool:
        """Whether the training of a global fleet was stopped before its end, so that a fit continues it."""
        return any(self.folder.glob(f"{CHECKPOINT}*"))

    def _kept_together(self, members: Sequence[Member], identity: str) -> tuple[Outcome, ...] | None:
        """Return the outcomes of an earlier global fit with the same settings to the same tables; None if none."""
        kept = []
        for member in members:
            record = self._record(member)
            if record.pop("identity", None) != identity:
                return None
            kept.append(Outcome(**record))
        self._report(kept)
        return tuple(replace(each, state="kept") if each.state == "fitted" else each for each in kept)

    def predict(
        self,
        tables: Any,
        at: Any = None,
        *,
        budget: float | None = None,
        engine: Workers = HERE,
        on_member: OnMember = lambda outcome, count: None,
        checkpoint: str | Path | None = None,
    ) -> Forecasts:
        """Forecast the steps after every member's table, or after the moment `at` in it; `tables` is as in `fit`.

        A member without a model, or with a table that cannot be forecast from, is listed among the outcomes. A global
        fleet also forecasts series that it has not seen, in the units of their own rows; their messages say so. With a
        `checkpoint` path, a run that was killed continues: what it had forecast is kept. Remove the file in the end.
        """
        content = self._content()
        id = content["settings"]["id"]
        members = members_of(tables, id)
        outcomes: dict[str, Outcome] = {}
        parts: dict[str, pa.Table] = {}
        shared = cache(lambda: saved.load(self.folder / SHARED).files())
        common = repr((__version__, id, at, budget)).encode()

        def note(outcome: Outcome, forecast: pa.Table | None = None) -> None:
            outcomes[outcome.name] = outcome
            if forecast is not None:
                parts[outcome.name] = forecast
            on_member(outcome, len(members))

        def jobs() -> Iterator[Job]:
            for member in members:
                try:
                    unseen = _limits(content) if content.get("global") and not self._record(member) else None
                    files = self._files(member) if unseen is None else shared()
                except IBForecastError as error:
                    note(failure(member, str(error)))
                    continue
                parts = [common, repr(unseen).encode(), member.sha256.encode(), *map(files.__getitem__, sorted(files))]
                identity = sha256(parts)
                if kept := progress.kept(identity):
                    note(*kept)
                else:
                    yield Job(member, files, unseen, identity)

        with progress_in(None if checkpoint is None else Path(checkpoint)) as progress:
            for job, done, lost in engine.run(jobs(), partial(forecast_member, id=id, at=at, budget=budget)):
                outcome, forecast = done or (failure(job.member, lost), None)
                if forecast is not None:
                    progress.add(job.identity, outcome, forecast)
                note(outcome, forecast)
        order = [name for name in members.readers if name in outcomes]
        return Forecasts({name: parts[name] for name in order if name in parts}, tuple(outcomes[n] for n in order))

    def model(self, name: str, device: str = "auto", table: Any = None) -> IBForecaster:
        """Return the fitted model of one member, for example to explain, evaluate or audit it.

        For a series that a global fleet has not seen, `table` is its table: its rows give the units.
        """
        member, content = Member(name, None), self._content()
        if table is not None and content.get("global") and not self._record(member):
            return IBForecaster.of(self._adopted(table, content), device)
        self._files(member)
        return IBForecaster.load(self._home(member), device)

    def _adopted(self, table: Any, content: dict[str, Any]) -> FittedModel:
        """Return the shared model for the table of a series that a global fleet has not seen."""
        return adopted(saved.load(self.folder / SHARED), table, _limits(content))

    def _home(self, member: Member) -> Path:
        return self.folder / MEMBERS / member.folder

    def _kept(self, member: Member, identity: str) -> Outcome | None:
        """Return the outcome of an earlier fit with the same settings to the same table; None if there is none."""
        record = self._record(member)
        if record.pop("identity", None) != identity or record["state"] != "fitted":
            return None
        return replace(Outcome(**record), state="kept")

    def _keep(self, member: Member, outcome: Outcome, files: Files, identity: str) -> None:
        """Write model and outcome to the member's folder, all or nothing; a failure does not replace a model."""
        home = self._home(member)
        if outcome.state == "failed" and self._record(member).get("state") == "fitted":
            return
        home.parent.mkdir(parents=True, exist_ok=True)
        with new_folder(home) as temporary:
            for name, content in files.items():
                _write(temporary / name, content, self.folder / SHARED / name)
            record = asdict(outcome) | {"identity": identity}
            write_atomically(temporary / MEMBER, document.write(MEMBER_FORMAT, VERSION, record).encode())
            temporary.chmod(0o755)  # mkdtemp makes folders that only their owner may read
            put_in_place(temporary, home)

    def _record(self, member: Member) -> dict[str, Any]:
        """Return what was written about a member; nothing if its folder is absent, damaged or that of another one."""
        try:
            record = document.read((self._home(member) / MEMBER).read_bytes(), MEMBER_FORMAT, VERSION)
            read_outcome({name: value for name, value in record.items() if name != "identity"})
        except (OSError, DataError):  # absent, or not as it was written: the member is fitted again
            return {}
        return record if record["name"] == member.name else {}

    def _files(self, member: Member) -> Files:
        record, home = self._record(member), self._home(member)
        if record.get("state") != "fitted":
            why = f"its fit failed: {record['message']}" if record else "it is not in this fleet"
            raise ModelFileError(
                "a member must be fitted before it is used", f"{member.name!r}: {why}", "fit the fleet with its table"
            )
        return {path.name: path.read_bytes() for path in home.iterdir() if path.name != MEMBER}

    def _content(self) -> dict[str, Any]:
        """Return the settings of the fleet, and the version that wrote them."""
        try:
            return document.read((self.folder / DOCUMENT).read_bytes(), FORMAT, VERSION, ModelFileError)
        except (OSError, ModelFileError) as error:
            raise ModelFileError(
                f"a fleet must be a folder with a complete {DOCUMENT}",
                f"{self.folder}: {error}",
                "name the folder of a fleet",
            ) from error

    @contextmanager
    def _begun(self, forecaster: IBForecaster, together: bool = False) -> Iterator[None]:
        """Be the only process that fits this fleet; write its document, and remove what a killed run left."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder, wait=False) as free:
            if not free:
                raise UsageError(
                    "a fleet must be fitted by one process at a time",
                    self.folder,
                    "wait for the other, or name another",
                )
            self._begin(forecaster, together)
            yield

    def _begin(self, forecaster: IBForecaster, together: bool) -> None:
        """Write the document of the fleet, and remove the unfinished folders of a killed run."""
        sweep(self.folder)  # first: a process that was killed in this function has left only a temporary file
        if self.folder.exists() and not (self.folder / DOCUMENT).is_file() and any(self.folder.iterdir()):
            raise UsageError("only a fleet can be continued", f"{self.folder}, which is not a fleet", "choose another")
        content: dict[str, Any] = {"ibforecast_version": __version__, "settings": forecaster.document()}
        content |= {"global": True} if together else {}
        write_atomically(self.folder / DOCUMENT, document.write(FORMAT, VERSION, content).encode())
        sweep(self.folder / MEMBERS)  # restores a model that a killed run had moved aside
        for unfinished in (self.folder / MEMBERS).glob(".*"):
            shutil.rmtree(unfinished, ignore_errors=True)

    def _report(self, outcomes: Sequence[Outcome]) -> None:
        rows = [asdict(outcome) for outcome in worst_first(outcomes)]
        if rows:
            write(pa.Table.from_pylist(rows), self.folder / REPORT)


def _measured(member: Member, fitted: FittedModel, source: Table, seconds: float) -> tuple[Outcome, Files]:
    """Return the outcome of a member of a global fleet, with its own errors, and its model as files."""
    model = IBForecaster.of(fitted, "cpu")
    try:
        measured, message = model.evaluate(source, "validation"), ""
    except DataError as error:  # it has its part in the training, but too few rows of its own
        measured, message = None, str(error)
    return replace(outcome_of(member, model, measured, seconds), message=message), fitted.files()


def _write(path: Path, content: bytes, shared: Path) -> None:
    """Write a file, or make it another name of a shared one with the same content, which takes no room."""
    if shared.is_file() and shared.read_bytes() == content:
        with suppress(OSError):  # some file systems have no such names
            path.hardlink_to(shared)
            return
    write_atomically(path, content)


def _texts(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times of any type as ISO texts, to the second if none has a fraction of one."""
    if pa.types.is_timestamp(times.type):
        with suppress(pa.ArrowInvalid):  # there are fractions of a second
            times = times.cast(pa.timestamp("s", times.type.tz))
    return times.cast(pa.string())


def _of_parts(forecaster: IBForecaster) -> IBForecaster:
    """Return the forecaster for the parts of a long table: they are wide, and none of their columns is a target."""
    return forecaster.replace(channels=forecaster.channels or (forecaster.target,), target=Layout.target)


def _limits(content: dict[str, Any]) -> Settings:
    """Return the settings of a fleet that matter for a series that it has not seen: those of the limits."""
    settings = content["settings"]
    return Settings(horizon=settings["horizon"], limits=settings["limits"], whole=settings["whole"])


def _identity(forecaster: IBForecaster) -> str:
    """Return the fingerprint of the settings, with the content of the recipe instead of its name."""
    settings = {name: value for name, value in forecaster.document().items() if name not in ("recipe", "device")}
    if isinstance(forecaster.recipe, Recipe):
        return sha256([to_json(settings), forecaster.recipe.sha256.encode()])
    return sha256([to_json(settings), OWN.text(forecaster.recipe).encode()])
