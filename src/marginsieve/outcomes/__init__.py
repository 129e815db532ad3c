"""What y is."""
