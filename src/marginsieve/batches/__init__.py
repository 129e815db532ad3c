"""Many training parts of one table at once, on a device: arrays of any library, machines in step, kernel matrices."""
