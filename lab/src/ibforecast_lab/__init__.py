"""The laboratory of ibforecast: rivals, explainers, experiments and the ledger of their results."""
