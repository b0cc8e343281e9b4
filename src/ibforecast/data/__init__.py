"""Tables in: calendars, the catalogue of data sets, splits, windows, and generators with planted truth."""
