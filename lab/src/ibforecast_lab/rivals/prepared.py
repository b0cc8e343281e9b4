"""The base of rivals that compute statistics of the training rows before they are trained."""

from abc import abstractmethod

from ibforecast.data.windows import Windows
from ibforecast_lab.rivals.rival import Rival


class Prepared(Rival):
    """A rival with statistics that are computed once and then stay fixed."""

    @abstractmethod
    def prepare(self, training: Windows) -> None:
        """Compute the statistics from the training rows, which end with the last window."""
