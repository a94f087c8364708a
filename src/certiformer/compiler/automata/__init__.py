"""Finite automata as transformers: a table or a regular expression goes in, the weights that read words come out.

`word_reader` gives one of three forms: `looped` (one block, a pass for every symbol), `chain-of-thought` (one
block, a written state for every symbol) and `log-depth` (two blocks, log2 of the length passes).
"""

from __future__ import annotations

from certiformer.compiler.automata.compiled import FORMS as FORMS
from certiformer.compiler.automata.compiled import Result as Result
from certiformer.compiler.automata.compiled import WordReader as WordReader
from certiformer.compiler.automata.compiled import word_reader as word_reader
from certiformer.compiler.automata.file import notes as notes
from certiformer.compiler.automata.file import parse_automaton as parse_automaton
from certiformer.compiler.automata.file import read_automaton as read_automaton
from certiformer.compiler.automata.file import split_word as split_word
from certiformer.compiler.automata.regular_expression import from_expression as from_expression
from certiformer.kernel.meanings.automaton import Automaton as Automaton
