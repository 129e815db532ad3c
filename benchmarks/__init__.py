"""Speed as ratios measured in one run against a named peer; `make bench` runs all of it."""
