"""Tables in: columns, time axis, splits and windows."""
