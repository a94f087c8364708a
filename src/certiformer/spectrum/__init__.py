"""Singular values, norms, ranks and decay exponents of weights, each named by its formula, in float64 with an error bar."""
