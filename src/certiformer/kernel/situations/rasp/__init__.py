"""Compiled programs: decode(T(w)) is the value of the program at every position of every word up to a length.

*Statement.*
Let a transformer have one register in front of the tokens, softmax attention, ReLU units, residuals and no norm, and
let a circuit assign to coordinates of its residual stream, from sub-layer to sub-layer, nodes of a RASP program. If the
checks below succeed for every sub-layer, then for every input of 1 to N tokens of the vocabulary on which the program
has a value, and at every position, decoding the read-out gives that value: the largest logit names it, or it is nearest
to the number. This holds (1) in real arithmetic on the stored weights and (2) in every run in the dtype.

*Proof.*
By induction over the sub-layers. The state says of every coordinate: at every position of every input it is within
e(v) of f(v), v the value of one node of the program there; at the register it is within e' of a constant; a coordinate
without a node is within e of zero.
*Cases* (`cells.Tally`): what is read together at a position has as many cases as the product of the domains. One is
left out only where an equation of the program, evaluated on it, fails: a node differs from what defines it, an index is
not below the length, a count is none that it can be. Cases checked and left out are counted and must be that product.
Numbers too many to list are an interval, and only affine functions of them are followed. A node that the output
does not need must have a value on every input, so that it excludes none.
*Embedding*: the sum of the rows of a token and a position is compared with f for all tokens and positions.
*Program* (`kernel.meanings.rasp`, `closure`, `lemmas`): program.json is read by the definition of what it means, the
values that it proposes for each node are checked by the equation of that node, and what no case can show (one
position is selected, selected values are the same one) is concluded by listed lemmas from premises that are checked.
*Attention* (`scores`, `heads`): scores are functions of the values of nodes at the two positions. All combinations of
values are enumerated and compared with the selector. Selected keys exceed all others by a gap, so the weights are those
of the mean over the selected positions up to a relative error, and what else is attended to weighs at most N e^-gap.
*Feed-forward* (`tables`): a sum of units is a piecewise-linear function of linear forms; again all combinations of
values are enumerated, and the result is compared with f of the node that it should hold. An error of a form moves the
sum by at most what the function moves over the interval.
*Rounding* (`fixed`): sums of multiples of 2^k below 2^(p + k) are exact in any order, also if tiny errors ride on them;
all other sums err by gamma_m times the sum of sizes. Beyond `kernel.rounding` a run is assumed to compute
exp(x) = 1 for |x| <= u/4.
*Identities* (`identities`) between counts are checked for every pair of positions.
*Read-out*: for all values of the output the error is smaller than the distance at which decoding changes. QED.

*Not claimed.*
Inputs on which the program has no value: a mean of symbols, a list written for another length (the sentence then says
"exactly" its length). Longer inputs, tokens outside the vocabulary. What the numbers between read-out and decoding are.
"""
