"""One TOML per data set: the paper's configuration table as data, and our own recipes beside it."""
