"""The benchmark of the service: how several turns become one number."""

import pytest

serving = pytest.importorskip("benchmarks.serving")


def test_p99_over_p50_is_the_median_of_turns_and_neither_the_best_nor_the_worst() -> None:
    assert serving._summary("lean_2_p99_over_p50", [2.0, 9.0, 3.0]) == 3.0


def test_the_best_time_and_rate_and_the_sum_of_errors_are_reported() -> None:
    assert serving._summary("lean_2_p99_ms", [2.0, 1.0]) == 1.0
    assert serving._summary("lean_2_per_second", [2.0, 1.0]) == 2.0
    assert serving._summary("lean_2_errors", [2.0, 1.0]) == 3.0


def test_p99_over_p50_is_that_of_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = iter([{"p50_ms": 2.0, "p99_ms": 8.0}, *[{"p50_ms": 1.0, "p99_ms": 3.0}] * len(serving.CLIENTS)])
    first = next(loads)
    monkeypatch.setattr(serving, "_bare", lambda path, table: {})
    monkeypatch.setattr(serving, "_load", lambda port, sent, clients: first if port == 7 else next(loads))
    results = serving._round(None, {}, b"", 1, {"lean_2": (7, b"", 64)})
    assert results["lean_2_p99_over_p50"] == 4.0
    assert results["clients_64_p99_over_p50"] == 3.0
