"""What sources mean, as definitions without inference: each module reads one stored source and says its value on a word."""
