"""The rule *margin*: compiled programs, checked sub-layer by sub-layer from the weights for all inputs at once."""
