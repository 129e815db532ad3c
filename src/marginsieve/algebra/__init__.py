"""The kernel algebra."""
