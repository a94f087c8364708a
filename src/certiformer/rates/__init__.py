"""The rate laboratory: claims about approximation rates, each a study with slopes, intervals and pictures."""
