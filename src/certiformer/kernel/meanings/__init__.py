"""What sources mean: one short definition each, which the kernel, its axioms and the compiler share."""
