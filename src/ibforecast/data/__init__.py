"""From tables to windows: columns, time axes, splits and windows."""
