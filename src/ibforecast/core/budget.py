"""The budget: how many tokens of a window a fraction allows."""


def allowance(budget: float, tokens: int) -> int:
    """Return the number of tokens a budget allows, ⌊ρ·P·C⌋."""
    # A product may fall just below a whole number: 0.29 * 100 is 28.999999999999996.
    return int(budget * tokens + 1e-9)


def settled(budget: float, tokens: int) -> float:
    """Return the smallest budget that allows the same number of tokens."""
    return allowance(budget, tokens) / tokens
