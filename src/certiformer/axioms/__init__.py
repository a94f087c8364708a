"""Theorems that are proved on paper, one module each with its helpers. `kernel.certificate` lists and loads them."""
