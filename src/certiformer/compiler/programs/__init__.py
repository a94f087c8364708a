"""Programs in the weights of a transformer: making, certifying, running and debugging them.

The certificates rest on the rule *situations*. JAX is imported when a transformer is run, not before.
"""
