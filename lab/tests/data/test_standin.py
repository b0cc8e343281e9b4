"""Stand-ins have the sizes of the real data sets and names that cannot be mistaken for theirs."""

import numpy as np
import pytest

from ibforecast_lab.data.catalogue import CATALOGUE
from ibforecast_lab.data.standin import STAND_INS, SUFFIX, stand_in


def test_a_stand_in_has_the_facts_of_its_data_set_but_another_name_and_no_source() -> None:
    for name, facts in STAND_INS.items():
        real = CATALOGUE[name.removesuffix(SUFFIX)]
        assert name == facts.name not in CATALOGUE
        assert (facts.channels, facts.rows, facts.cycle, facts.parts) == (
            real.channels,
            real.rows,
            real.cycle,
            real.parts,
        )
        assert facts.checksum == facts.url == "generated"


@pytest.mark.parametrize("name", ["Solar-stand-in"])
def test_the_same_seed_gives_the_same_values(name: str) -> None:
    one, same, other = stand_in(name), stand_in(name), stand_in(name, seed=1)
    assert one.values.shape == (STAND_INS[name].rows, STAND_INS[name].channels)
    assert np.isfinite(one.values).all()
    assert one.sha256 == same.sha256 != other.sha256
