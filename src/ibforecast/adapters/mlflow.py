"""Models in MLflow: logged or saved as a `pyfunc` model that forecasts tables and itemises its forecasts.

The model is stored as `IBForecaster.save` writes it, safetensors and JSON, and read by `_load_pyfunc` of this module.
Nothing is pickled.
"""

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ibforecast._version import __version__
from ibforecast.core.errors import MissingExtraError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.receipt import Step
from ibforecast.forecaster import IBForecaster

try:
    import mlflow.pyfunc
    from mlflow.models import ModelSignature
    from mlflow.models.model import ModelInfo
    from mlflow.types import DataType, ParamSchema, ParamSpec
except ModuleNotFoundError as error:
    raise MissingExtraError("mlflow", "mlflow") from error

PARAMS = ParamSchema(
    [
        ParamSpec("at", DataType.string, ""),
        ParamSpec("receipt", DataType.boolean, False),
        ParamSpec("step", DataType.long, 0),
    ]
)
"""The parameters of `Pyfunc.predict`, with their defaults. Others are ignored by MLflow, with a warning."""

REQUIREMENTS = (f"ibforecast[mlflow]=={__version__}",)


@dataclass(frozen=True)
class Entry:
    """An entry of the receipt of the channel `forecast`: what it is, of which channel and time, and its amount."""

    forecast: str
    part: str
    channel: str
    start: str
    end: str
    amount: float


@dataclass(frozen=True)
class Pyfunc:
    """A model as MLflow uses it."""

    model: IBForecaster

    def predict(self, table: Any, params: dict[str, Any] | None = None) -> Any:
        """Forecast the steps after a table, or after the moment `params["at"]`, in the same kind of table.

        With `params["receipt"]` return a table of what adds up to the forecast of each channel instead. It is about the
        step ahead `params["step"]`, counted from 1, or about the mean over the horizon (0).
        """
        chosen: dict[str, Any] = {"at": "", "receipt": False, "step": 0} | (params or {})
        source, at = self.model.open(table), chosen["at"] or None
        if not chosen["receipt"]:
            return self.model.predict(source, at)
        rows = entries(self.model.explain(source, at), chosen["step"] or "mean")
        return replace(self.model.desk, kind=source.kind).tabulate(Entry, rows)

    def get_raw_model(self) -> IBForecaster:
        """Return the forecaster; this is MLflow's name for it."""
        return self.model


def entries(explained: ExplainedForecast, step: Step = "mean") -> Iterator[Entry]:
    """Yield the entries of the receipts of all forecast channels, at one step ahead or of the mean."""
    for name in explained.channels:
        if name not in explained.past:
            for part in explained.itemised(name, step).parts(explained):
                yield Entry(name, **asdict(part))


def log_model(
    model: IBForecaster,
    name: str = "model",
    explained: ExplainedForecast | None = None,
    *,
    input_example: Any = None,
    registered_model_name: str | None = None,
    pip_requirements: Sequence[str] = REQUIREMENTS,
) -> ModelInfo:
    """Log a fitted model to the active run, or a new one; `mlflow.pyfunc.load_model(info.model_uri)` loads it.

    `input_example`, a pandas table, is stored with the model, as the body of a request to `mlflow models serve` too. An
    explanation, if given, is logged with it: `log_explanation`.
    """
    with _stored(model, input_example, pip_requirements) as options:
        info: ModelInfo = mlflow.pyfunc.log_model(name=name, registered_model_name=registered_model_name, **options)
    if explained is not None:
        log_explanation(explained)
    return info


def save_model(
    model: IBForecaster,
    path: str | Path,
    *,
    input_example: Any = None,
    pip_requirements: Sequence[str] = REQUIREMENTS,
) -> None:
    """Write a fitted model to a folder that `mlflow.pyfunc.load_model` and `mlflow models serve` read."""
    with _stored(model, input_example, pip_requirements) as options:
        mlflow.pyfunc.save_model(path=str(path), **options)


@contextmanager
def _stored(model: IBForecaster, example: Any, pip_requirements: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Write a model to a folder for as long as MLflow copies it, and yield how MLflow is to read it."""
    with TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        yield {
            "loader_module": __name__,
            "data_path": str(Path(folder) / "model"),
            "signature": ModelSignature(params=PARAMS),
            "input_example": example,
            "pip_requirements": list(pip_requirements),
        }


def log_explanation(explained: ExplainedForecast, folder: str = "explanation") -> None:
    """Log an explanation to the artifacts of the active run: why.json, why.png, and receipt.csv, of the mean."""
    with TemporaryDirectory() as written:
        here = Path(written)
        (here / "why.json").write_text(explained.to_json(), "utf8")
        explained.plot(here / "why.png")
        with (here / "receipt.csv").open("w", encoding="utf8", newline="") as file:
            rows = csv.DictWriter(file, [field.name for field in fields(Entry)])
            rows.writeheader()
            rows.writerows(map(asdict, entries(explained)))
        mlflow.log_artifacts(str(here), folder)


def _load_pyfunc(path: str) -> Pyfunc:
    """Read a saved model; MLflow calls this."""
    return Pyfunc(IBForecaster.load(path))
