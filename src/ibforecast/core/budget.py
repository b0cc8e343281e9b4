"""The budget: how many tokens of a window a fraction allows."""


def allowance(budget: float, tokens: int) -> int:
    """Return the number of tokens a budget allows, ⌊ρ·P·C⌋, tolerating rounding in the last bits."""
    return int(budget * tokens + 1e-9)


def settled(budget: float, tokens: int) -> float:
    """Return the budget that states an allowance exactly: of all budgets that allow the same tokens, the smallest."""
    return allowance(budget, tokens) / tokens
