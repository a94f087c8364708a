"""Opening a checkpoint: `open_tensors` finds out what a path holds."""

from certiformer.audit.files.find import open_tensors as open_tensors
from certiformer.audit.files.tensors import TensorFiles as TensorFiles
from certiformer.audit.files.tensors import TensorInfo as TensorInfo
