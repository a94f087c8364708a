"""Rule *rounding*: how far a run of a stored transformer in a dtype may be from the transformer over the real numbers.

*The run.* A format has precision p, unit roundoff u = 2^-p, smallest normal number t and largest finite number. In a
run every addition, multiplication and fused multiply-add returns its exact result times (1 + d), |d| <= u, plus at
most t when it underflows. Rounding is to nearest. Results *and operands* below t may be flushed to zero. An operation
may be done in a wider format and rounded later: u is taken a little above 2^-p, so that rounding twice is covered.
Division, square root, exponential and error function have the errors of `Format`, which are larger than those of the
runtimes named in the docs. Sums and matrix products are done in any order, with or without fused multiply-add.

`formats` has the formats and the rules for sums that everything else is made of.
"""

from certiformer.kernel.rounding.formats import FORMATS as FORMATS
from certiformer.kernel.rounding.formats import Format as Format
from certiformer.kernel.rounding.formats import NoBound as NoBound
from certiformer.kernel.rounding.formats import format_of as format_of
from certiformer.kernel.rounding.formats import mean_value as mean_value
from certiformer.kernel.rounding.formats import no_overflow as no_overflow
from certiformer.kernel.rounding.formats import summation as summation
