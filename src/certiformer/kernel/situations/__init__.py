"""Rule *situations*: decode(T(w)) = meaning(w) for every word w up to a length, or for any number of steps.

Compiled transformers are proved by a simulation. *Cells* of a row are terms of the meaning (its symbol, the state before
it, the pair under the head); each is a function of *bases* with finite domains. Before every sub-layer each coordinate of a
row is the code of one cell plus noise, enclosed coordinate by coordinate, over the reals and in a run at once (`numbers`).

    cells      bases, cells, equations; the situations of cells that are read together, all of them counted
    units      (b) hidden units: in every situation of what they read, they write the code of the new cell
    heads      (c) a head looks at one row, by a gap, and brings what is there up to a leak that follows from gap and rows
    walk       (a) the embedding, (d) the read-out, (e) a pass that is repeated leads back to what was assumed before it
    plan       what is claimed about coordinates: cells and codes. Nothing in it is believed.

A *meaning* is a definition. What it says about looking, "the cell of this row is what that cell is at row target(i)", is by
the number of a row, so that rows with equal values are told apart. Each source has a module with its cells and bases.

Certificates name the source only: the plan follows from its sizes and from the widths of the model, and a model that is
laid out otherwise is refused. A case is left out only by an equation of the meaning, evaluated on that very case; what
cannot be listed, told apart or enclosed is refused.

*Compiled programs* (`rasp`) need heads that select several rows (means, widths), affine-coded numbers and lemmas about
counts and orders. *Not yet here*: ordered selection, logarithmic depth, encoder and decoder rest on axioms.
"""

from certiformer.kernel.situations.chain_of_thought_automaton import written_walk as written_walk
from certiformer.kernel.situations.chain_of_thought_circuit import circuit_walk as circuit_walk
from certiformer.kernel.situations.looped_automaton import looped_walk as looped_walk
from certiformer.kernel.situations.looped_machine import machine_walk as machine_walk
from certiformer.kernel.situations.rasp.prove import prove_program as prove_program
