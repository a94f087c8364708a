"""What a claim about real numbers rests on: python-flint and the standard library.

| read first | for |
|---|---|
| `balls`, `taylor`, `stream`, `functions` | enclosures: balls, Taylor forms, arrays of them, elementary functions |
| `programs` | scalar programs, in which targets are written; one fold, many arithmetics |
| `arrays`, `forward` | programs over arrays, in which transformers are written, and their forms |
| `files`, `configuration`, `weights`, `network` | stored files, read strictly and within limits, as array programs |
| `shallow`, `affine_softmax` | one layer: affine parts, units, heads over prototypes, read off a program |
| `problem`, `splits`, `cover` | |A - B| on a box, bounded on every leaf of an exact cover |
| `points` | |T - y| at every row of a finite list |
| `certificate`, `steps`, `claim`, `rules` | what is claimed, the steps of its proof, and the rules that check them |
| `check`, `workers` | the verdict on a folder, from its bytes alone; boxes on all cores |
| `computation`, `axioms` | transformers that compute; theorems proved on paper, loaded by name |
"""
