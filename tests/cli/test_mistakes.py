"""Typical mistakes at the command line: each gets rule, value and remedy, and the documented exit code."""

import gzip
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

USAGE, DATA, MODEL = 2, 3, 5
FIT = ("fit", "TABLE", "--horizon", "12", "--look-back", "48", "--out", "out")
Write = Callable[[pd.DataFrame], Any]
"""Takes a table that is right, and returns the content of the wrong file: text, bytes or another table."""


def good(rows: int = 300) -> pd.DataFrame:
    hour = np.arange(rows)
    times = pd.date_range("2024-01-01", periods=rows, freq="h")
    load, wind = (10 + np.sin(2 * np.pi * hour / period) for period in (24.0, 12.0))
    return pd.DataFrame({"time": times, "load": load.round(3), "wind": wind.round(3)})


def text(table: pd.DataFrame, **rest: Any) -> str:
    return table.to_csv(index=False, **rest)


def replaced(column: str, row: int, value: Any) -> Write:
    def write(table: pd.DataFrame) -> pd.DataFrame:
        changed = table.astype(object)
        changed.loc[row, column] = value
        return changed

    return write


@dataclass(frozen=True)
class Mistake:
    """Words of a command, the content of its table, and what the error must contain; TABLE and MODEL are paths."""

    words: tuple[str, ...]
    code: int
    value: str
    """What the user wrote or gave, as the message shows it."""
    remedy: str
    write: Write = text
    name: str = "table.csv"


def fit(*more: str) -> tuple[str, ...]:
    return (*FIT, *more)


MISTAKES: dict[str, Mistake] = {
    # --- the path ---
    "a path that does not exist": Mistake(("check", "lod.csv"), DATA, "lod.csv", "check the path"),
    "the default look-back, asked of a short table": Mistake(
        ("fit", "TABLE", "--horizon", "12", "--look-back", "96", "--out", "out"),
        DATA,
        "70 rows",
        "look_back",
        lambda table: text(table.head(100)),
    ),
    "a folder as the table": Mistake(("check", "."), USAGE, "'.', a folder", "name a file"),
    "a model as the table": Mistake(("check", "MODEL"), USAGE, "a model", "name the table"),
    "a table as the model": Mistake(("predict", "TABLE", "TABLE"), MODEL, "table.csv", "folder of a model"),
    "a spreadsheet": Mistake(("check", "TABLE"), USAGE, "table.xlsx", "save the spreadsheet as CSV", name="table.xlsx"),
    "a negative seed of the demo": Mistake(("demo", "--seed", "-1"), USAGE, "-1", "--help"),
    "json by its suffix": Mistake(("check", "TABLE"), USAGE, "table.json", "convert", name="table.json"),
    "text by its suffix": Mistake(("check", "TABLE"), USAGE, "table.txt", "rename", name="table.txt"),
    "a model that does not exist": Mistake(("predict", "modell", "TABLE"), MODEL, "modell", "folder of a model"),
    "model and table exchanged": Mistake(("predict", "TABLE", "MODEL"), MODEL, "table.csv", "swapped?"),
    "a swapped? that exists": Mistake(fit("--out", "MODEL"), USAGE, "model", "--overwrite"),
    "an output of another format": Mistake(
        ("predict", "MODEL", "TABLE", "--out", "next.pdf"), USAGE, "next.pdf", "convert or rename"
    ),
    # --- the file ---
    "an empty file": Mistake(("check", "TABLE"), DATA, "table.csv", "export it again", lambda _: b""),
    "only a header": Mistake(("check", "TABLE"), DATA, "0 x 3", "fill", lambda t: text(t[:0])),
    "one row": Mistake(("check", "TABLE"), DATA, "1", "add rows", lambda t: text(t[:1])),
    "json inside": Mistake(
        ("check", "TABLE"),
        DATA,
        "'table.csv', which is JSON",
        "convert it to CSV",
        lambda t: t[["load"]][:3].to_json(orient="records"),
    ),
    "a line of json for each row": Mistake(
        ("check", "TABLE"), DATA, "JSON", "convert it", lambda t: t[["load"]].to_json(orient="records", lines=True)
    ),
    "a web page": Mistake(
        ("check", "TABLE"), DATA, "a web page", "download the file", lambda _: "\n<!DOCTYPE html>\n<html></html>\n"
    ),
    "a spreadsheet with another suffix": Mistake(
        ("check", "TABLE"), DATA, "a spreadsheet", "save the spreadsheet as CSV", lambda _: b"PK\x03\x04\0\0xl/workbook"
    ),
    "points between semicolons that may mean thousands": Mistake(
        ("check", "TABLE"), DATA, "1.250", "between thousands", lambda t: text(t.assign(load="1.250"), sep=";")
    ),
    "bars": Mistake(("check", "TABLE"), DATA, "time|load|wind", "commas", lambda t: text(t, sep="|")),
    "utf-16": Mistake(
        ("check", "TABLE"),
        DATA,
        "UTF-16, in 'table.csv'",
        "save it again as CSV UTF-8",
        lambda t: text(t).encode("utf-16"),
    ),
    "a gzipped file without its suffix": Mistake(
        ("check", "TABLE"),
        DATA,
        "'table.csv', which is gzip",
        "rename it to table.csv.gz",
        lambda t: gzip.compress(text(t).encode()),
    ),
    "a plain file with the suffix of a gzipped one": Mistake(
        ("check", "TABLE"), DATA, "table.csv.gz", "export it again", name="table.csv.gz"
    ),
    "a csv file with the suffix of parquet": Mistake(
        ("check", "TABLE"), DATA, "table.parquet", "export it again", name="table.parquet"
    ),
    "a cut parquet file": Mistake(
        ("check", "TABLE"), DATA, "table.parquet", "export it again", lambda _: b"PAR1xx", "table.parquet"
    ),
    "rows of different length": Mistake(
        ("check", "TABLE"), DATA, "table.csv", "export it again", lambda t: text(t[:5]) + "2024-01-02,1\n"
    ),
    "a title above the header": Mistake(
        ("check", "TABLE"), DATA, "names in line 2", "skiprows=[0]", lambda t: "Report of 2024\n" + text(t)
    ),
    "units below the names": Mistake(
        ("check", "TABLE"),
        DATA,
        "values from line 3",
        "remove line 2",
        lambda t: text(t).replace("\n", "\n,kW,m/s\n", 1),
    ),
    # --- the columns ---
    "a wrong time column": Mistake(fit("--time", "tmie"), DATA, "'time'", "did you mean 'time'"),
    "a wrong channel": Mistake(fit("--channels", "lod"), DATA, "'load'", "did you mean 'load'"),
    "a channel in capitals": Mistake(fit("--channels", "LOAD"), DATA, "'load'", "'load'"),
    "a wrong covariate": Mistake(fit("--future", "holidays"), DATA, "'load'", "name an existing one"),
    "a channel with two roles": Mistake(fit("--past", "load", "--future", "load"), USAGE, "load", "name each once"),
    "every channel only read": Mistake(fit("--past", "load,wind"), DATA, "'load'", "add one"),
    "no time column": Mistake(("check", "TABLE"), DATA, "'load'", "--time", lambda t: text(t[["load", "wind"]])),
    "only a time column": Mistake(("check", "TABLE"), DATA, "'time'", "add one", lambda t: text(t[["time"]])),
    "an unnamed index": Mistake(("check", "TABLE"), DATA, "''", "--channels load,wind", lambda t: t[2:].to_csv()),
    "two channels of one name": Mistake(
        ("check", "TABLE"), DATA, "'load'", "rename", lambda t: text(t).replace("wind", "load", 1)
    ),
    "an id without a value column": Mistake(
        fit("--id", "meter", "--target", "kwh"), DATA, "'meter'", "--target", lambda t: text(t.assign(meter="a"))
    ),
    # --- the cells ---
    "text among numbers": Mistake(
        ("check", "TABLE"), DATA, "'broken' at 2024-01-01 05:00", "--channels", replaced("load", 5, "broken")
    ),
    "decimal commas": Mistake(("check", "TABLE"), DATA, "'10,5'", "points, not commas", replaced("load", 5, "10,5")),
    "thousands separators": Mistake(
        ("check", "TABLE"), DATA, "'1,234.5'", "1234.5 instead", replaced("load", 5, "1,234.5")
    ),
    "units in cells": Mistake(("check", "TABLE"), DATA, "'10 kW'", "10 instead of 10 kW", replaced("load", 5, "10 kW")),
    "a text that means a missing value": Mistake(
        ("check", "TABLE"), DATA, "'.' at 2024-01-01 05:00", "--missing-value .", replaced("load", 5, ".")
    ),
    "infinite values": Mistake(
        ("check", "TABLE"), DATA, "inf at 2024-01-01 05:00", "leave them empty", replaced("load", 5, "inf")
    ),
    "a channel of text": Mistake(
        ("check", "TABLE"), DATA, "'site A'", "--channels", lambda t: t.assign(place="site A")
    ),
    "an empty channel": Mistake(fit(), DATA, "'load'", "drop the channel", lambda t: t.assign(load="")),
    # --- the times ---
    "a time that is missing": Mistake(("check", "TABLE"), DATA, "row 5", "drop", replaced("time", 5, None)),
    "a time that is none": Mistake(
        ("check", "TABLE"), DATA, "row 5: 'yesterday'", "correct them", replaced("time", 5, "yesterday")
    ),
    "a row of totals": Mistake(
        ("check", "TABLE"), DATA, "row 300: 'Total' in 'time'", "row of totals", lambda t: text(t) + "Total,1,2\n"
    ),
    "a row of totals in an export with serial numbers": Mistake(
        ("check", "TABLE", "--time", "Zeit", "--dates", "excel"),
        DATA,
        "row 300: 'Total' in 'Zeit'",
        "remove the rows",
        lambda t: text(t.assign(time=44927 + t.index / 24).rename(columns={"time": "Zeit"})) + "Total,1,2\n",
    ),
    "no header line": Mistake(
        ("check", "TABLE"), DATA, "2024-01-01 00:00:00,10.0,10.0", "header line", lambda t: text(t, header=False)
    ),
    "only numbers as names": Mistake(
        ("check", "TABLE"), DATA, "44927,10.0", "header line", lambda t: text(t.assign(time=44927), header=False)
    ),
    "times that decrease": Mistake(("check", "TABLE"), DATA, "row 1", "sort the table", lambda t: t[::-1]),
    "a time twice": Mistake(fit(), DATA, "appears twice", "--irregular", lambda t: pd.concat([t[:6], t[5:]])),
    "absent rows": Mistake(fit(), DATA, "row 40", "--irregular fill", lambda t: t.drop(index=[40, 41])),
    "another frequency": Mistake(fit("--freq", "15min"), DATA, "steps of 1h", "request 1h"),
    "a frequency that is none": Mistake(fit("--freq", "hourly"), USAGE, "'hourly'", "'1h'"),
    "a zone that is none": Mistake(fit("--zone", "Berlin"), USAGE, "Berlin", "Europe/Berlin"),
    "day or month first": Mistake(
        ("check", "TABLE"),
        DATA,
        "'02/01/2024'",
        "--dates dayfirst",
        lambda t: text(t[:12].assign(time=pd.date_range("2024-01-01", periods=12).strftime("%d/%m/%Y"))),
    ),
    "workdays as days": Mistake(
        fit(), DATA, "follows", "--freq B", lambda t: t.assign(time=pd.bdate_range("2024-01-01", periods=300))
    ),
    "a holiday among workdays": Mistake(
        fit("--freq", "B"),
        DATA,
        "row 40",
        "if these are holidays",
        lambda t: t.assign(time=pd.bdate_range("2024-01-01", periods=300)).drop(index=[40]),
    ),
    "an hour of the day in words": Mistake(fit("--zero-at", "night"), USAGE, "'night'", "write 22:00..05:30"),
    "hours of the day of a table of days": Mistake(
        fit("--zero-at", "22:00..05:30"),
        USAGE,
        "1d",
        "leave it out",
        lambda t: t.assign(time=pd.date_range("2024-01-01", periods=300)),
    ),
    "a step without a cycle": Mistake(
        fit(), USAGE, "7h", "--cycle", lambda t: t.assign(time=pd.date_range("2024-01-01", periods=300, freq="7h"))
    ),
    # --- the settings ---
    "no horizon": Mistake(("fit", "TABLE", "--out", "out"), USAGE, "--horizon", "--help"),
    "a horizon in words": Mistake(fit("--horizon", "a day"), USAGE, "a day", "--help"),
    "a horizon of zero": Mistake(fit("--horizon", "0"), USAGE, "horizon=0", "positive"),
    "a horizon that is too long": Mistake(fit("--horizon", "250"), DATA, "rows", "longer table"),
    "a look-back that is too long": Mistake(fit("--look-back", "290"), DATA, "rows", "--look-back"),
    "a budget in percent": Mistake(fit("--budget", "20"), USAGE, "budget=20", "0.2"),
    "a budget of zero": Mistake(fit("--budget", "0"), USAGE, "budget=0", "0.2"),
    "a patch that does not divide": Mistake(fit("--patch-len", "7"), USAGE, "patch_len=7", "try 4, 6, 8"),
    "a split in percent": Mistake(fit("--split", "70,10,20"), USAGE, "70", "0.7, 0.1, 0.2"),
    "a split of two": Mistake(fit("--split", "0.8,0.2"), USAGE, "0.8,0.2", "0.7,0.1,0.2"),
    "a cycle in words": Mistake(fit("--cycle", "daily"), USAGE, "daily", "--help"),
    "a recipe that does not exist": Mistake(fit("--recipe", "defualt"), USAGE, "'defualt'", "'default'"),
    "a device that does not exist": Mistake(fit("--device", "gpu"), USAGE, "gpu", "auto"),
    "sealed and choosing": Mistake(fit("--sealed", "--choosing"), USAGE, "both", "leave one"),
    "a misspelt option": Mistake(fit("--horizn", "3"), USAGE, "--horizn", "--horizon"),
    "a misspelt verb": Mistake(("forcast", "TABLE"), USAGE, "forcast", "see ibforecast --help"),
    "an option of another verb": Mistake(("predict", "MODEL", "TABLE", "--horizon", "3"), USAGE, "--horizon", "--help"),
    "a misspelt verb of few letters": Mistake(("explian", "MODEL", "TABLE"), USAGE, "explian", "'explain'"),
    "a word for irregular": Mistake(fit("--irregular", "drop"), USAGE, "drop", "--help"),
    # --- the use of a model ---
    "another table": Mistake(
        ("predict", "MODEL", "TABLE"),
        DATA,
        "'load' must be in the table (got 'power'",
        "give a table that has it",
        lambda t: text(t.rename(columns={"load": "power"})),
    ),
    "too few rows": Mistake(("predict", "MODEL", "TABLE"), DATA, "20", "earlier rows", lambda t: t[:20]),
    "a moment outside the table": Mistake(
        ("predict", "MODEL", "TABLE", "--at", "2031-01-01"), DATA, "2031-01-01", "the nearest is"
    ),
    "a moment in words": Mistake(("predict", "MODEL", "TABLE", "--at", "today"), USAGE, "today", "2024-01-13 11:00"),
    "a table as an explanation": Mistake(("verify", "MODEL", "TABLE"), USAGE, "a table", "--table"),
    "model and explanation swapped": Mistake(
        ("verify", "TABLE", "MODEL"), USAGE, "a file", "swapped? ibforecast verify", lambda _: "{}", "why.json"
    ),
    "a table that verify is given without its option": Mistake(
        ("verify", "MODEL", "why.json", "load.csv"), USAGE, "load.csv", "add --table load.csv"
    ),
    "a forecast compared with itself": Mistake(
        ("compare", "MODEL", "TABLE", "--at", "2024-01-10 00:00", "--with", "2024-01-10 00:00", "--channel", "load"),
        USAGE,
        "2024-01-10 00:00 twice",
        "--with",
    ),
    "a comparison of no channel": Mistake(("compare", "MODEL", "TABLE"), USAGE, "3 channels", "--channel load"),
    "a limit with its ends exchanged": Mistake(fit("--limit", "load=5..1"), USAGE, "load=5..1", "write 0..500"),
    "a limit in words": Mistake(fit("--limit", "load=low..1"), USAGE, "load=low..1", "write 0..500"),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_gets_rule_value_and_remedy(
    mistake: Mistake, desk: Any, call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / mistake.name
    content = mistake.write(
        good().rename(columns={"time": "when"}).assign(heat=1.5) if "MODEL" in mistake.words else good()
    )
    content = text(content) if isinstance(content, pd.DataFrame) else content
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    places = {"TABLE": str(path), "MODEL": str(desk.model)}
    outcome = call(*(places.get(word, word) for word in mistake.words), "--json")
    assert outcome.code == mistake.code, outcome.err
    document = json.loads(outcome.out)
    assert document["exit_code"] == mistake.code
    assert document["rule"], "no rule"
    assert document["got"], "no value"
    assert mistake.value in document["error"]
    assert document["hint"], "no remedy"
    assert mistake.value, "a mistake must check the value"
    assert mistake.remedy, "a mistake must check the remedy"
    assert mistake.remedy in document["hint"]
    assert "unexpected" not in document["rule"]
    assert outcome.err.startswith(("error: ", "warning: "))
    assert not (tmp_path / "out").exists()


def test_there_are_at_least_sixty_of_them() -> None:
    assert len(MISTAKES) >= 60


@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1"])
def test_a_byte_order_mark_and_an_old_encoding_are_no_mistakes(
    encoding: str, call: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(text(good().rename(columns={"wind": "Wärme"})).encode(encoding))
    outcome = call("check", path, "--json")
    assert (outcome.code, outcome.document["channels"]) == (0, ["load", "Wärme"])


@pytest.mark.parametrize(
    "words", [("predict",), ("explain",), ("backtest", "--windows", "1"), ("dossier",), ("report",)]
)
def test_a_file_in_a_folder_that_does_not_exist_is_refused_and_no_folder_is_made(
    desk: Any, call: Callable[..., Any], tmp_path: Path, words: tuple[str, ...]
) -> None:
    verb, *rest = words
    suffix = {"explain": "json", "dossier": "html", "report": "html"}.get(verb, "csv")
    outcome = call(verb, desk.model, desk.table, *rest, "--out", tmp_path / "no" / "folder" / f"f.{suffix}")
    assert outcome.code == USAGE
    assert f"the folder of a file must exist (got {tmp_path / 'no' / 'folder'}, which does not)" in outcome.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "verb", ["predict", "explain", "evaluate", "audit", "drivers", "report", "dossier", "calibrate"]
)
def test_a_table_before_its_model_gets_the_words_in_order(desk: Any, call: Callable[..., Any], verb: str) -> None:
    outcome = call(verb, desk.table, desk.model)
    assert outcome.code == MODEL
    assert f"hint: swapped? ibforecast {verb} {desk.model} {desk.table}" in outcome.err


def test_a_file_with_tabs_is_read_by_its_name_and_written_with_tabs(
    desk: Any, call: Callable[..., Any], tmp_path: Path
) -> None:
    pd.read_csv(desk.table).to_csv(tmp_path / "load.tsv", sep="\t", index=False)
    usual = call("predict", desk.model, desk.table)
    assert call("predict", desk.model, tmp_path / "load.tsv").out == usual.out
    for name in ("next.tsv", "next.tsv.gz"):
        assert call("predict", desk.model, desk.table, "--out", tmp_path / name).code == 0
        pd.testing.assert_frame_equal(
            pd.read_csv(tmp_path / name, sep="\t", parse_dates=["when"]),
            pd.read_csv(io.StringIO(usual.out), parse_dates=["when"]),
        )
