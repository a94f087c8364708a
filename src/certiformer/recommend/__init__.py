"""A sequence recommender with guarantees: trained from a table of interactions, measured honestly, and told what is proved.

| file | what for |
|---|---|
| `interactions`, `log` | a table of (user, item, time) becomes sequences, whatever its order |
| `split` | what is trained on, what is tested on, and which users are sealed |
| `packing`, `network`, `fit` | the one transformer, trained on rows that hold several users each |
| `score`, `metrics`, `baselines` | the rank of every wanted item among all items, beside popularity and item-kNN |
| `binomial`, `conformal`, `compression`, `stream`, `architecture` | the five guarantees |
| `folder`, `card` | what is stored, and the page for a documentation site |
"""
