"""From tensors to the one form: every family of transformers has a module that knows its names and layouts."""

from certiformer.audit.read.checkpoint import read_checkpoint as read_checkpoint
from certiformer.audit.read.checkpoint import read_tensors as read_tensors
