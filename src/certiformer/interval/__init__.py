"""Outward-rounded float64 intervals in JAX, their rounding rules, and the checks that the compiler keeps them.

`Interval` and its operations enclose real arithmetic; `padding` holds every allowance; `rigorous_jit` compiles without
the rewrites that could undo them; `run_canaries` checks at start-up that compiler and hardware behave as assumed.
"""

from certiformer.interval import arithmetic as arithmetic
from certiformer.interval import elementary as elementary
from certiformer.interval import padding as padding
from certiformer.interval.arithmetic import Interval as Interval
from certiformer.interval.arithmetic import centre_radius as centre_radius
from certiformer.interval.arithmetic import point as point
from certiformer.interval.canaries import Canaries as Canaries
from certiformer.interval.canaries import run_canaries as run_canaries
from certiformer.interval.constants import enclose_constant as enclose_constant
from certiformer.interval.rigorous import apart as apart
from certiformer.interval.rigorous import rigorous_jit as rigorous_jit
