"""The theorems as pictures: the same bytes every time."""

from ibforecast_lab.plots.theory import budget_png, rate_png, rate_saving_png
from ibforecast_lab.theory.error_floor import budget_curve, echo_model, rate_curve
from ibforecast_lab.theory.rate_saving import TOY_EXPLANATIONS, rate_saving, toy


def test_the_same_curves_give_the_same_pictures() -> None:
    explanations = {name: rate_saving(toy(name)) for name in TOY_EXPLANATIONS}
    for picture in (
        lambda: rate_saving_png(explanations),
        lambda: budget_png(budget_curve(echo_model(5, 2))),
        lambda: rate_png([rate_curve(0.5), rate_curve(0.9)]),
    ):
        drawn = picture()
        assert drawn.startswith(b"\x89PNG")
        assert drawn == picture()
