"""Theorems that are proved on paper, one module each with its helpers. `kernel.axioms` lists and loads them.

A module of a theorem about functions on a box or about sequences offers `check(node, problem)`, an upper bound of
sup |T - f|; one of a theorem about transformers that compute offers what `kernel.computation` says.
"""
