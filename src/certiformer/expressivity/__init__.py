"""What the architecture alone allows: positions, score biases, temperature.

One module per theorem; each builds the transformer it speaks of or bounds what any such transformer can do.
"""
