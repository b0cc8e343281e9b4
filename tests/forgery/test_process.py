"""The same forgeries in a process without the type checker of the tests: the library refuses every one."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.forgery.forgeries import FORGERIES, Case
from tests.forgery.test_models import SHAPES, forged

SCRIPT = """
import json, sys
from pathlib import Path
import ibforecast as ib
model, table = ib.IBForecaster.load(sys.argv[1], device="cpu"), sys.argv[2]
passed = []
for name, text, needs_table in json.loads(Path(sys.argv[3]).read_text("utf8")):
    try:
        if model.verify(text, table if needs_table else None):
            passed.append(name)
    except ib.IBForecastError:
        pass
for nothing in (None, 5, {}):
    try:
        model.verify(nothing)
        passed.append(str(nothing))
    except ib.UsageError:
        pass
print(json.dumps(passed))
"""


def test_without_type_checks_every_forgery_is_refused_and_the_truth_passes(case: Case, tmp_path: Path) -> None:
    made = [(forgery.name, forgery.make(case.scene), forgery.needs_table) for forgery in FORGERIES]
    texts = [("the truth", case.scene.explained.to_json(), True), *(lie for lie in made if lie[1] is not None)]
    (tmp_path / "texts.json").write_text(json.dumps(texts), "utf8")
    words = [sys.executable, "-c", SCRIPT, str(case.folder / "model"), str(case.folder / "table.parquet")]
    done = subprocess.run(
        [*words, str(tmp_path / "texts.json")], capture_output=True, text=True, check=False, env={**os.environ}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == ["the truth"]


LOADING = """
import sys
import ibforecast as ib
for folder in sys.argv[1:]:
    try:
        ib.IBForecaster.load(folder, device="cpu")
        print("loaded", folder)
    except ib.IBForecastError:
        pass
"""


def test_without_type_checks_a_model_whose_numbers_are_not_one_for_each_channel_is_refused(
    case: Case, tmp_path: Path
) -> None:
    folders = [str(forged(case, tmp_path / str(number), change)) for number, change in enumerate(SHAPES.values())]
    done = subprocess.run([sys.executable, "-c", LOADING, *folders], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr[-2000:]
