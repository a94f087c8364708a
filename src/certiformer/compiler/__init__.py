"""The compiler: RASP programs become the weights of transformers that compute them exactly.

The passes need NumPy only. `programs`, `machines`, `automata`, `circuits` and `incontext` certify, store and run what is
made.

The passes, one module each: `graph_to_extended`, `extended_to_draft`, `draft_to_layers`, `layers_to_weights`,
`draft_to_circuit`; `driver` runs them.
"""

from certiformer.compiler.driver import Compiled as Compiled
from certiformer.compiler.driver import compile_graph as compile_graph
from certiformer.compiler.driver import compile_program as compile_program
