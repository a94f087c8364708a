"""The parts a compiled transformer is made of: piecewise linear tables, and scores that are zero exactly where selected."""
