"""A real server on a real port: starting, load, disconnecting clients, and stopping."""

import http.client
import json
import os
import shutil
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import httpx
import pytest

from ibforecast import IBForecaster
from ibforecast.cli.main import run
from ibforecast.core.errors import MissingExtraError, UsageError
from ibforecast.serve.run import serve
from ibforecast.serve.service import Service
from ibforecast.serve.settings import Settings, check_reach, hosts_of, named

MOMENTS = [f"2023-01-{day:02} {hour:02}:00" for day in range(5, 15) for hour in range(24)]


def wait_until(holds: Any, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.005)


def windows_of(service: Service) -> float:
    """Return the number of windows computed with the model `town`."""
    return service.metrics.registry.get_sample_value("ibforecast_windows_total", {"model": "town"}) or 0.0


def test_the_command_exits_once_every_accepted_request_is_answered(desk: Any, command: Any) -> None:
    with command(str(desk.town), f"second={desk.dial}") as (process, url):
        assert httpx.get(f"{url}/health").json()["models"] == ["town", "second"]
        moments = MOMENTS[:80]
        question = {"model": "town", "table": desk.columns(), "at": moments}
        with ThreadPoolExecutor(4) as threads:
            pending = [threads.submit(httpx.post, f"{url}/explain", json=question, timeout=60) for _ in range(3)]
            wait_until(lambda: 'windows_total{model="town"}' in httpx.get(f"{url}/metrics").text)
            assert "_created" not in httpx.get(f"{url}/metrics").text
            process.send_signal(signal.SIGTERM)
            answers = [answer.result() for answer in pending]
        assert [answer.status_code for answer in answers] == [200] * 3
        assert [len(answer.json()["explanations"]) for answer in answers] == [len(moments)] * 3
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (0, "", "stopped\n")
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/health")


def test_the_work_of_a_disconnected_client_is_dropped(make: Any, desk: Any, listen: Any, slow_down: Any) -> None:
    service = make()
    slow_down(service, 0.02)
    with listen(service) as (_, url):
        body = json.dumps({"table": desk.columns(), "at": MOMENTS}).encode()
        connection = http.client.HTTPConnection(url.removeprefix("http://"))
        connection.request("POST", "/explain", body, {"content-type": "application/json"})
        wait_until(lambda: windows_of(service) > 2)
        connection.close()
        wait_until(lambda: 'route="/explain",status="499"} 1' in httpx.get(f"{url}/metrics").text)
        done = windows_of(service)
        time.sleep(0.15)
        assert windows_of(service) <= done + 1 < len(MOMENTS)
        assert "requests_in_flight 1.0\n" in httpx.get(f"{url}/metrics").text


def test_a_slow_request_does_not_block_the_others(make: Any, desk: Any, listen: Any, slow_down: Any) -> None:
    service, moments = make(), MOMENTS[:60]
    slow_down(service, 0.02)
    with listen(service) as (_, url), ThreadPoolExecutor(1) as threads:
        slow = threads.submit(httpx.post, f"{url}/explain", json={"table": desk.columns(), "at": moments}, timeout=60)
        wait_until(lambda: windows_of(service) > 0)
        for _ in range(3):
            assert httpx.post(f"{url}/explain", json={"table": desk.columns()}, timeout=60).status_code == 200
            assert httpx.get(f"{url}/health").status_code == 200
        assert not slow.done()
        assert len(slow.result().json()["explanations"]) == len(moments)


def test_a_stopping_server_finishes_accepted_requests(make: Any, desk: Any, listen: Any, slow_down: Any) -> None:
    service = make()
    slow_down(service, 0.3)
    with ThreadPoolExecutor(4) as threads:
        with listen(service) as (server, url):
            pending = [
                threads.submit(httpx.post, f"{url}/explain", json={"table": desk.columns()}, timeout=60)
                for _ in range(4)
            ]
            wait_until(lambda: service.metrics.registry.get_sample_value("ibforecast_requests_in_flight") == 4)
            server.should_exit = True
            answers = [answer.result() for answer in pending]
        assert [answer.status_code for answer in answers] == [200] * 4


def test_many_concurrent_clients_all_get_their_own_answer(make: Any, desk: Any, listen: Any) -> None:
    service = make()
    with listen(service) as (_, url), httpx.Client(timeout=60) as client, ThreadPoolExecutor(64) as threads:
        text = desk.table.read_bytes()
        stored = client.post(f"{url}/tables", content=text).json()["table"]["id"]

        def ask(at: str) -> Any:
            return client.post(f"{url}/explain", json={"table": stored, "at": at})

        moments = MOMENTS[:64]
        answers = list(threads.map(ask, moments))
        assert [answer.status_code for answer in answers] == [200] * 64
        answered = [answer.json()["explanations"][0] for answer in answers]
        assert [document["window"]["times"][47] for document in answered] == moments
        verdicts = threads.map(
            lambda document: client.post(f"{url}/verify", json={"explanation": document}).json(), answered[:8]
        )
        assert all(verdict["verified"] for verdict in verdicts)


def test_models_are_swapped_without_dropping_a_request(
    make: Any, desk: Any, listen: Any, tmp_path: Path, slow_down: Any
) -> None:
    path = tmp_path / "swapped"
    shutil.copytree(desk.town, path)
    service = make({"swapped": path})
    old, new = desk.model(), IBForecaster.load(desk.dial)
    question = {"table": desk.columns(), "at": MOMENTS[:3]}
    with listen(service) as (_, url), httpx.Client(timeout=60) as client, ThreadPoolExecutor(8) as threads:
        swapped = threading.Event()

        def ask(number: int) -> Any:
            return client.post(f"{url}/explain", json=question)

        def swap() -> Any:
            new.save(path, overwrite=True)
            answered = [client.post(f"{url}/models/reload").json() for _ in range(3)]
            swapped.set()
            return answered

        pending = [threads.submit(ask, number) for number in range(12)]
        reloaded = threads.submit(swap)
        pending += [threads.submit(ask, number) for number in range(12)]
        answers = [answer.result() for answer in pending]
        assert [answer["changed"] for answer in reloaded.result()] == [["swapped"], [], []]
        assert [answer.status_code for answer in answers] == [200] * 24
        known = {model.fitted.weights_sha256: model for model in (old, new)}
        for answer in answers:
            weights = {document["weights_sha256"] for document in answer.json()["explanations"]}
            assert len(weights) == 1, "a request keeps the model it began with"
            assert weights <= known.keys()
        last = ask(0).json()["explanations"][0]
        assert last["weights_sha256"] == new.fitted.weights_sha256
    service.models.close()
    wait_until(lambda: not [thread for thread in threading.enumerate() if thread.name == "windows of swapped"])


def test_a_model_that_cannot_be_reloaded_stays_in_use(make: Any, over: Any, desk: Any, tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copytree(desk.town, tmp_path / name)
    client = over(make({name: tmp_path / name for name in ("one", "two")}))
    weights = tmp_path / "two" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    refused = client.post("/models/reload", {})
    assert refused.status_code == 409
    assert "it was cut off" in refused.json()["error"] + refused.json()["hint"]
    assert client.post("/explain", {"model": "two", "table": desk.columns()}).status_code == 200
    assert client.post("/models/reload", {"models": ["one"]}).json()["reloaded"] == ["one"]
    assert client.post("/models/reload", {"models": ["three"]}).status_code == 422


def test_a_body_that_never_arrives_times_out(make: Any, listen: Any) -> None:
    with listen(make(body_seconds=0.1)) as (_, url):
        place, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((place, int(port))) as connection:
            head = "POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99"
            connection.sendall(f"{head}\r\n\r\n{{".encode())
            connection.settimeout(20)
            assert b" 408 " in connection.recv(4096)


def test_a_body_that_is_too_large_is_answered_before_it_is_sent(make: Any, listen: Any) -> None:
    with listen(make(max_body=1000)) as (_, url):
        place, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((place, int(port))) as connection:
            head = "POST /tables HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999"
            connection.sendall(f"{head}\r\n\r\n".encode())
            connection.settimeout(20)
            answered = connection.recv(4096)
            assert b" 413 " in answered
            assert b"connection: close" in answered.lower()


# --- Starting ---


def test_listening_to_other_machines_needs_a_token_or_an_explicit_option() -> None:
    for host in ("127.0.0.1", "localhost", "::1", "127.0.0.9"):
        check_reach(host, None, False)
    for host in ("0.0.0.0", "::", "192.168.0.7", "example.org"):
        with pytest.raises(UsageError, match=r"must have a token .* set IBFORECAST_TOKEN, or add --allow-public"):
            check_reach(host, None, False)
        check_reach(host, "a long secret", False)
        check_reach(host, None, True)
    assert hosts_of("127.0.0.1", None) == {"127.0.0.1", "localhost", "::1"}
    assert hosts_of("127.0.0.1", "a long secret") is None
    assert hosts_of("0.0.0.0", None) is None


def test_models_are_named_by_folder_or_explicitly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd=name").mkdir()
    assert named(["models/town", "wind=models/other"]) == {"town": Path("models/town"), "wind": Path("models/other")}
    assert named(["odd=name"]) == {"odd=name": Path("odd=name")}
    assert list(named(["."])) == [tmp_path.name]
    with pytest.raises(UsageError, match=r"different names \(got 'town' for 'b/town'\); use NAME=PATH"):
        named(["a/town", "b/town"])
    with pytest.raises(UsageError, match="different names"):
        named(["=town"])


@pytest.mark.parametrize(
    "limits",
    [
        {"max_body": 0},
        {"max_windows": 0},
        {"workers": 0},
        {"workers": 2**64},
        {"token": "short"},
        {"token": "ünlesbar?"},
    ],
)
def test_limits_that_allow_nothing_or_no_machine_can_keep_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Settings(**limits)


def test_a_port_that_is_taken_is_reported(desk: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"must be free .*{port}.* try another --port"):
            serve({"town": desk.town}, "127.0.0.1", port, Settings())


def test_without_the_extra_the_command_names_the_package_to_install(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ibforecast\[serve\]'"):
        serve({"town": desk.town}, "127.0.0.1", 0, Settings())


def test_the_token_may_come_from_the_environment(desk: Any, command: Any) -> None:
    with command(str(desk.town), "--host", "0.0.0.0", IBFORECAST_TOKEN="a long secret") as (_, url):
        place = url.replace("0.0.0.0", "127.0.0.1")
        assert httpx.get(f"{place}/models").status_code == 401
        assert httpx.get(f"{place}/models", headers={"authorization": "Bearer a long secret"}).status_code == 200


def test_several_processes_share_the_port_and_give_the_same_bytes(desk: Any, command: Any) -> None:
    with command(str(desk.town), str(desk.table), "--workers", "2") as (process, url):
        question = {"table": "table.csv", "at": MOMENTS[0]}
        answers = [httpx.post(f"{url}/explain?form=document", json=question, timeout=60) for _ in range(12)]
        assert {answer.text for answer in answers} == {desk.model().explain(desk.table, MOMENTS[0]).to_json()}
        for path in ("/tables", "/models/reload"):
            refused = httpx.post(f"{url}{path}", timeout=60)
            assert (refused.status_code, "of one process" in refused.json()["error"]) == (409, True)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=40)
        assert (process.returncode, out, err) == (0, "", "stopped\n")
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/health")


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_a_killed_process_is_started_again_and_nothing_but_its_requests_is_lost(desk: Any, command: Any) -> None:
    question, ended = {"table": "table.csv", "at": MOMENTS[0]}, "a process of the service ended (signal 9, Killed)"
    expected = desk.model().explain(desk.table, MOMENTS[0]).to_json()
    with command(str(desk.town), str(desk.table), "--workers", "2") as (process, url):

        def ask() -> str:
            return httpx.post(f"{url}/explain?form=document", json=question, timeout=120).text

        one, _ = before = workers_of(process)
        os.kill(one, signal.SIGKILL)
        assert {ask() for _ in range(10)} == {expected}
        wait_until(lambda: len(workers_of(process)) == 2)
        for each in workers_of(process):
            os.kill(each, signal.SIGKILL)
        assert ask() == expected, "who connects while no process is ready is answered by the first that is"
        assert not set(workers_of(process)) & set(before)
        process.send_signal(signal.SIGTERM)  # most likely, one of them is still starting
        out, err = process.communicate(timeout=40)
        assert (process.returncode, out) == (0, "")
        assert err.splitlines() == [f"{ended}, and is started again"] * 3 + ["stopped"]


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_no_process_is_left_if_the_service_is_killed_while_it_starts_one_again(desk: Any, command: Any) -> None:
    with command(str(desk.town), "--workers", "2") as (process, _):
        one, _ = before = workers_of(process)
        os.kill(one, signal.SIGKILL)
        wait_until(lambda: len(set(workers_of(process)) - set(before)) == 1)
        after = workers_of(process)
        process.kill()
        wait_until(lambda: not any(Path(f"/proc/{each}").exists() for each in (*before, *after)), 60)


def workers_of(process: Any) -> list[int]:
    """Return the processes of a service that answer requests."""
    own = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(each) for each in own if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()]


def test_a_process_that_cannot_start_ends_the_service(tmp_path: Path, capfd: Any) -> None:
    with pytest.raises(UsageError, match=r"every process of a service must start \(got exit code 1\)"):
        serve({"none": tmp_path / "none"}, "127.0.0.1", 0, Settings(workers=2))
    assert "none" in capfd.readouterr().err


def test_processes_that_keep_ending_end_the_service(desk: Any) -> None:
    def end_all(url: str) -> None:
        threading.Thread(target=keep_ending, daemon=True).start()

    def keep_ending() -> None:
        while not over.wait(0.1):
            for process in active_children():
                process.kill()

    over = threading.Event()
    try:
        with pytest.raises(UsageError, match=r"at most 5 processes .* 30 s \(got one more, signal 9, Killed\)"):
            serve({"town": desk.town}, "127.0.0.1", 0, Settings(workers=2), end_all)
    finally:
        over.set()
    assert active_children() == []


def test_a_process_that_would_read_another_model_ends_the_service(desk: Any, tmp_path: Path) -> None:
    path = tmp_path / "swapped"
    shutil.copytree(desk.town, path)

    def swap(url: str) -> None:
        IBForecaster.load(desk.dial).save(path, overwrite=True)
        active_children()[0].kill()

    with pytest.raises(UsageError, match=r"the same models and tables \(got another model swapped by"):
        serve({"swapped": path}, "127.0.0.1", 0, Settings(workers=2), swap)
    assert active_children() == []


def test_limits_may_come_from_the_environment(desk: Any, command: Any) -> None:
    with command(str(desk.town), IBFORECAST_MAX_BODY="1", IBFORECAST_MAX_WINDOWS="2", HOME="/nowhere") as (_, url):
        refused = httpx.post(f"{url}/tables", content=b"x" * (2**20 + 1), timeout=60)
        assert (refused.status_code, "at most 1048576 bytes" in refused.json()["error"]) == (413, True)
        refused = httpx.post(f"{url}/explain", json={"table": "demo", "at": MOMENTS[:3]}, timeout=60)
        assert "at most 2 moments" in refused.json()["error"]


def test_limits_of_the_environment_count_for_the_verb_too(
    desk: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("IBFORECAST_MAX_BODY", "0")
    with pytest.raises(SystemExit):
        run(["serve", str(desk.town), "--port", "0"])
    assert "max_body must be at least 1" in capsys.readouterr().err
