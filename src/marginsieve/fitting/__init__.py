"""From a training part to a path, and from a path to a model."""
