"""The types all packages share: windows, contexts, explanations, forecasts, contracts and errors."""
