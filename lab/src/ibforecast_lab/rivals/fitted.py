"""The base of rivals that are fitted at once instead of trained step by step."""

from abc import abstractmethod

from ibforecast.data.windows import Windows
from ibforecast_lab.rivals.rival import Rival


class Fitted(Rival):
    """A rival without trainable weights."""

    libraries: tuple[str, ...] = ()
    """The packages that do the work. A record contains their versions."""

    @abstractmethod
    def fit(self, training: Windows) -> None:
        """Fit to the training rows, which end with the last window."""
