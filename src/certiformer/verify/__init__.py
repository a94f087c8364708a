"""The search: branch and bound for the upper end of the bracket, ascent for the lower end."""

from certiformer.verify.bounder import FloatDomain as FloatDomain
from certiformer.verify.branch_and_bound import Bounder as Bounder
from certiformer.verify.branch_and_bound import Budget as Budget
from certiformer.verify.branch_and_bound import Search as Search
from certiformer.verify.branch_and_bound import search as search
from certiformer.verify.falsify import Falsifier as Falsifier
from certiformer.verify.tree import SplitTree as SplitTree
