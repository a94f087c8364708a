"""The kernel: what is claimed, and the rules that alone conclude it. It needs python-flint and the standard library.

| to be read in this order | what is there |
|---|---|
| here | `Refused`: a step that does not hold. Every rule either concludes or raises it |
| `files`, `programs` | strict reading within limits; exact numbers and the language of targets, and how they are printed |
| `balls`, `taylor` | enclosures of real numbers, and of functions on boxes; they know nothing of claims |
| `arrays`, `weights` | programs over arrays and their enclosures; stored transformers, read strictly |
| `problem` | a claim about a box: two functions; about a list: a transformer and rows |
| `layers` | one layer in closed form: prototypes, and sums of units |
| `certificate`, `claim` | the steps of a proof, as recorded; what a folder claims, and the sentence that says so |
| `rules` | `Proved`, which only these make: *boxes*, *triangle*, *split*, *outputs*, *finite*, and axioms by name |
| `check`, `workers` | the verdict on a folder, from its bytes alone; boxes on all cores |

Loaded only where a claim needs them: `situations` and `meanings` (words and steps), `rounding` (runs in a dtype),
`computation` (transformers that compute), `construction`, and `certiformer.axioms` (theorems proved on paper, by name).
"""


class Refused(Exception):
    """A proof step that does not hold; the message is one sentence for the user."""
