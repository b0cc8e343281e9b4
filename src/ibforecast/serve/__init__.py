"""The service: forecasts, explanations, checks and what-ifs over HTTP; needs the `serve` extra."""
