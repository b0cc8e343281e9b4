"""The budget: how many tokens of a window a fraction allows."""

from ibforecast.core.errors import require


def allowance(budget: float, tokens: int) -> int:
    """Return the number of tokens a budget allows, ⌊ρ·P·C⌋."""
    # A product may fall just below a whole number: 0.29 * 100 is 28.999999999999996.
    return int(budget * tokens + 1e-9)


def settled(budget: float, tokens: int) -> float:
    """Return the smallest budget that allows the same number of tokens."""
    return allowance(budget, tokens) / tokens


def require_budget(budget: float) -> None:
    """Refuse a budget that is no fraction of a window."""
    require(0 < budget <= 1, "budget must lie in (0, 1]", f"budget={budget}", "try 0.2 for a fifth")
