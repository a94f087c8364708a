"""Rules that the kernel loads where a proof names them: sums, ridges, compiled programs, rounded runs."""
