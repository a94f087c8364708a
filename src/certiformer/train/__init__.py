"""One loop that trains one model or ten thousand: all steps inside one compiled call."""

from certiformer.arguments import make_callable
from certiformer.train.constraints import Constraint as Constraint
from certiformer.train.constraints import parse_constraint as parse_constraint
from certiformer.train.dropout import Dropout as Dropout
from certiformer.train.loop import Trained as Trained
from certiformer.train.loop import best_of as best_of
from certiformer.train.loop import train as train
from certiformer.train.losses import LOSSES as LOSSES
from certiformer.train.optimiser import Optimiser as Optimiser
from certiformer.train.problem import Problem as Problem
from certiformer.train.problem import stack as stack
from certiformer.train.problem import transformer_outputs as transformer_outputs

make_callable(__name__, "certiformer.train.loop", "train")  # `certiformer.train` is the verb, too
