"""`python -m ibforecast_lab.experiments.page` writes the page of results."""

from ibforecast_lab.experiments.page import main

if __name__ == "__main__":
    main()
