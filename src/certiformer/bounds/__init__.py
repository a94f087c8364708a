"""What is known about the error on unseen data and about Lipschitz constants: pure formulas, one module per theorem."""
