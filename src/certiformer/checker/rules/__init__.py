"""The structural rules of proof trees: sums over disjoint variables and over directions."""
