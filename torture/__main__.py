"""Attack the library: `make torture`, or `python -m torture [PART …] [--minutes N]`.

Exit code 1 if a promise was broken. The record has an entry for each part; parts that are not run keep theirs.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from ibforecast.core.files import to_json, write_atomically
from ibforecast_lab.experiments.run import commit, device_name, versions

PARTS = ("kills", "storage", "fuzz", "scrambled", "numerics", "distributed", "service")
"""One file each, with a function of the same name that takes minutes and a seed, and returns figures and `broken`."""


def main() -> int:
    """Run the parts, print their figures, and write them to a file if there is one."""
    parser = argparse.ArgumentParser(description="Attacks on the library.")
    parser.add_argument("parts", nargs="*", help=f"which of: {', '.join(PARTS)} (default: all)")
    parser.add_argument("--minutes", type=float, default=1.0, help="time for each part")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="also write a JSON record here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    broken = 0
    for name in arguments.parts or PARTS:
        part: Callable[[float, int], dict[str, Any]] = getattr(import_module(f"torture.{name}"), name)
        begun = time.perf_counter()
        result = part(arguments.minutes, arguments.seed)
        broken += len(result["broken"])
        settings = {"commit": commit(), "device": device_name(torch.device("cpu")), "seed": arguments.seed}
        load = {"seconds": round(time.perf_counter() - begun, 1), "load": round(os.getloadavg()[0], 1)}
        print(f"{name}: {json.dumps(result | load)}", flush=True)
        if arguments.out:
            _keep(arguments.out, name, settings | load | result)
    return int(broken > 0)


def _keep(path: Path, name: str, figures: dict[str, Any]) -> None:
    record = json.loads(path.read_text()) if path.exists() else {"measures": {}}
    measures = dict(sorted((record["measures"] | {name: figures}).items()))
    write_atomically(path, to_json({"versions": versions(), "measures": measures}))


if __name__ == "__main__":
    sys.exit(main())
