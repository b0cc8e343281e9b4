"""A report is verified by making it again: an edited number is found although the document inside stays true."""

import json
from pathlib import Path

import click.testing
import pytest
from tests.forgery.conftest import table

from ibforecast import DataError, IBForecaster
from ibforecast.cli.main import main
from ibforecast.plots.page import DATA_BEGINS
from ibforecast.report import to_html, verify_html

ROWS = table("fixed mask").drop(columns="wind")


@pytest.fixture(scope="module")
def model() -> IBForecaster:
    return IBForecaster(6, 24, 0.25, patch_len=6, epochs=1, device="cpu", recipe="additive").fit(ROWS)


@pytest.fixture(scope="module")
def report(model: IBForecaster) -> bytes:
    return to_html(model, ROWS, [ROWS["when"][380], ROWS["when"][400]], "model", "table.parquet", drivers=2)


def test_a_true_report_passes_and_edited_ones_do_not(model: IBForecaster, report: bytes) -> None:
    assert verify_html(model, report, ROWS)
    head, rest = report.split(DATA_BEGINS, 1)
    data, tail = rest.split(b"</script>", 1)
    content = json.loads(data)
    content["moments"][0]["receipts"][0]["steps"][0]["forecast"] += 8
    text = json.dumps(content, ensure_ascii=False).replace("<", "\\u003c").encode()
    edited = head + DATA_BEGINS + text + b"</script>" + tail
    other_words = report.replace(b"<title>", b"<title>Approved: ", 1)
    for lie, part in ((edited, "in moments;"), (other_words, "in its script or style;")):
        assert lie != report
        verification = verify_html(model, lie, ROWS)
        assert not verification
        assert part in verification.checks[0].detail


def test_what_a_report_calls_itself_is_named_and_has_its_form(model: IBForecaster, report: bytes) -> None:
    """The date and the version are taken from the page, so they could be any text, and would be printed on it."""
    detail = verify_html(model, report, ROWS).checks[0].detail
    assert "what it calls itself is not checked: model 'model', table 'table.parquet', made on 2" in detail
    for name, text in (
        ("on", "2024-01-01 00:00 UTC, approved"),
        ("on", "9999-99-99 99:99 UTC"),
        ("version", "1.0 approved by the regulator"),
        ("version", "9.9.9+approved-by-the-regulator"),
    ):
        made = {"on": "2024-01-01 00:00 UTC", "version": "0.1.0", name: text}
        lie = to_html(model, ROWS, [ROWS["when"][380]], "model", "table.parquet", drivers=2, made=made)
        (check,) = verify_html(model, lie, ROWS).checks
        assert not check.passed
        assert f"made.{name} is" in check.detail


def test_a_report_about_another_table_does_not_pass(model: IBForecaster, report: bytes) -> None:
    assert not verify_html(model, report, ROWS.assign(load=ROWS["load"] + 1.0))


def test_the_command_line_verifies_a_report_with_its_table(model: IBForecaster, report: bytes, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    ROWS.to_parquet(tmp_path / "table.parquet")
    path = tmp_path / "report.html"
    words = ["verify", str(tmp_path / "model"), str(path)]
    for content, code in ((report, 0), (report.replace(b"<title>", b"<title>!", 1), 4)):
        path.write_bytes(content)
        outcome = click.testing.CliRunner().invoke(main, [*words, "--table", str(tmp_path / "table.parquet")])
        assert outcome.exit_code == code, outcome.output
    assert click.testing.CliRunner().invoke(main, words).exit_code != 0, "without a table"


def test_a_page_without_data_is_not_a_report(model: IBForecaster) -> None:
    with pytest.raises(DataError, match="a report must contain its data"):
        verify_html(model, b"<html></html>", ROWS)
