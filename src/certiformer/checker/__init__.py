"""The checker (level 2): python-flint and the standard library, nothing of the search."""

from certiformer.checker.check import Verdict as Verdict
from certiformer.checker.check import check as check
from certiformer.checker.regular import find_singularity as find_singularity
