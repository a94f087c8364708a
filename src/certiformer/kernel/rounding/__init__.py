"""Rule *rounding*: |run of T in a dtype - T| <= eps at every point of a domain whose coordinates are numbers of the dtype.

T is the function of the stored weights over the real numbers. A run is *any* execution of the formulas of
`docs/model.md` in a format with precision p, unit roundoff u = 2^-p and smallest normal number t, in which every
addition, multiplication and fused multiply-add returns its exact result times (1 + d), |d| <= u, plus at most t when it
underflows:

* rounding is to nearest, or done in a wider format and rounded later: u is taken a little above 2^-p for rounding twice;
* results *and operands* below t may be flushed to zero; nothing exceeds the largest finite number, or there is no bound;
* sums and matrix products are done in any order, with or without fused multiply-add;
* division, square root, exponential and error function have the errors of `Format`, larger than those of the runtimes
  named in `docs/float-semantics.md`; x/1 = x;
* softmax subtracts the largest score and uses one value of each score; hard attention compares the scores it computed;
* layer norm takes the mean first, then the mean square of the differences;
* codes of sines and cosines are computed in float64 and rounded.

`formats` has one operation and sums, `operations` the arrays, `attention` one row, `walk` the program, `runs` the claim.
"""

from certiformer.kernel.rounding.formats import FORMATS as FORMATS
from certiformer.kernel.rounding.formats import Format as Format
from certiformer.kernel.rounding.formats import NoBound as NoBound
from certiformer.kernel.rounding.formats import format_of as format_of
from certiformer.kernel.rounding.formats import mean_value as mean_value
from certiformer.kernel.rounding.formats import no_overflow as no_overflow
from certiformer.kernel.rounding.formats import summation as summation
