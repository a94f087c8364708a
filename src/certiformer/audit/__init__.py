"""Which guarantees hold for a trained checkpoint, with every constant shown."""
