"""What travels between the rooms: windows, contexts, explanations, forecasts, contracts, errors."""
