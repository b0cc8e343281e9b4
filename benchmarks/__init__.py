"""Speed and memory, as ratios measured side by side in one run; nothing here can fail a test."""
