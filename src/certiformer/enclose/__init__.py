"""Rigorous ranges of targets and of transformer blocks on boxes, vectorised in float64 (see docs/enclosures.md)."""
