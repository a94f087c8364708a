"""From a target and an epsilon to weights and a proof tree, one module per construction; `method` is what they share."""
