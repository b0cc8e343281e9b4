"""Run the benchmarks: `make bench`, or `python -m benchmarks [NAME …]`."""

import argparse
import json
from os import getloadavg
from pathlib import Path

import torch

from benchmarks import (
    demo,
    drivers,
    ecosystem,
    explorer,
    first,
    fits,
    fleet,
    growth,
    measures,
    mutations,
    naive,
    neighbours,
    onnx,
    profile,
    receipts,
    sealed,
    serving,
    start,
)
from ibforecast.core.files import to_json, write_atomically
from ibforecast_lab.experiments.run import commit, device_name, versions

MEASURES = measures.MEASURES | {
    "onnx": onnx.exported,
    "serving": serving.serving,
    "explorer": explorer.explorer,
    "ecosystem": ecosystem.ecosystem,
    "first": first.first,
    "fits": fits.fits,
    "fleet": fleet.fleet,
    "fleet_global": fleet.fleet_global,
    "short": fits.short,
    "neighbours": neighbours.neighbours,
    "growth": growth.growth,
    "profile": profile.profiled,
    "mutations": mutations.mutations,
    "naive": naive.naive,
    "naive_part": naive.naive_part,
    "demo": demo.demo,
    "drivers": drivers.drivers,
    "receipts": receipts.receipts,
    "receipt_times": receipts.receipt_times,
    "scrambled": sealed.scrambled,
    "sealed_forecast": sealed.sealed_forecast,
    "sealed_training": sealed.sealed_training,
    "start": start.start,
    "memory": start.memory,
    "document": start.document,
}


def main() -> None:
    """Measure, print the numbers, and write them to a file if there is one."""
    parser = argparse.ArgumentParser(description="Speed, as ratios of numbers measured in one run.")
    parser.add_argument("names", nargs="*", help=f"which of: {', '.join(MEASURES)} (default: all)")
    parser.add_argument("--out", type=Path, help="also write a JSON record here")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    results, before = {}, getloadavg()
    for name in arguments.names or MEASURES:
        results[name] = MEASURES[name](device)
        print(f"{name}: {json.dumps(results[name])}", flush=True)
    if arguments.out:
        # How many programs wanted a core in the minute before the first and the last measure.
        load = [round(average[0], 1) for average in (before, getloadavg())]
        record = {
            "commit": commit(),
            "device": device_name(device),
            "load": load,
            "versions": versions(),
            "measures": results,
        }
        write_atomically(arguments.out, to_json(record))


if __name__ == "__main__":
    main()
