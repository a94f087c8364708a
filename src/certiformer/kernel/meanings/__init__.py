<<<<<<< HEAD
"""What sources mean: one short definition each, which the kernel, its axioms and the compiler share."""
=======
"""What sources mean, as definitions without inference: each module reads one stored source and says its value on a word."""
>>>>>>> df030cc69c50d780200d0a784860986890ac1973
