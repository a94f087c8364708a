"""The page `report.html` of a run folder: one self-contained file that draws what was proved and how.

`page.write(data)` renders plain data that `search.report_data` computed; nothing here evaluates a model, and the page asks
for nothing outside itself (no script, no font, no image that is not inside it). It is a picture of the folder, not
evidence: evidence is what `certiformer check` accepts.

The data is a dictionary with these entries (texts unless said otherwise; numbers in texts are exact decimals):

| entry | what it holds |
|---|---|
| `source` | what the user wrote: a formula or `file.py:name` |
| `variables`, `outputs` | two integers |
| `domain`, `epsilon` | the box and the tolerance as written |
| `formulas` | the recorded program, one text an output |
| `outcome`, `reason`, `method` | one of the four outcomes, why, and how the weights were made |
| `level` | an integer: 2 checked, 1 searched only, 0 neither |
| `checked` | whether whoever renders the page has seen the checker accept |
| `recorded` | may be missing: whether all this was read from a folder and nothing of it checked, which the page then says |
| `lower`, `upper`, `apriori` | bounds of the largest error, or None |
| `witness` | None or `{"point": [texts], "output": int, "error": text}` |
| `sizes` | None or `{"blocks", "heads", "units", "registers", "width", "nonzero", "dense", "bytes"}`, all integers |
| `proof` | None or a node `{"rule", "bound", "notes": [texts], "children": [nodes]}` |
| `assumptions` | a list of texts: what the proof trusts |
| `pictures` | a list of pictures, see below |
| `seconds`, `versions`, `seals` | dictionaries |
| `directory` | the folder, or None |
| `sentence`, `where`, `not_claimed` | optional, for a claim not about a box: the claim, `rows`, the pairs to show |
| `notes` | optional: a list of sentences about the result that are no part of the claim |
| `candidates` | optional: a list of `{"method", "nonzero", "dense", "heads", "bound", "outcome"}`, None where unknown |

An *axis* is `{"label", "low": float, "high": float, "low_text", "high_text"}`. A picture has `kind`, `title`, `caption` and

* `curves`: `x` (axis), `points`, `target`, `model`, `error` (lists of floats), `epsilon` (float);
* `steps`: `x` (axis), `values` (integers at equally long pieces of the axis, from its low end);
* `map`: `x`, `y` (axes), `values` (rows from the low end of y; floats or None), `low`, `high` (floats), `unit`,
  `palette` (`"error"`, `"value"` or `"depth"`);
* `attention`: `inputs` (texts), `heads`: `{"name", "maps"}` with one map `{"rows", "columns", "values"}` for each input;
* `sizes`: `x`, `y` (ends of logarithmic axes), `name` (text for both), `curves`: `{"label", "style", "points"}` with pairs,
  `dots`: `{"label", "style", "x", "y"}`.
"""
