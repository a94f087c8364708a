"""Theorems that are proved on paper, one module each with its helpers. `kernel.axioms` lists and loads them."""
