"""`python -m ibforecast`: the command line, also for `torchrun -m ibforecast`."""

from ibforecast.cli.main import run

if __name__ == "__main__":
    run()
