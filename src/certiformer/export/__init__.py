"""The same transformer for other programs: ONNX, PyTorch, Hugging Face, TransformerLens, and stock architectures.

None of the libraries is needed before its own format is asked for, and none is needed to write a folder.
"""

from certiformer.arguments import make_callable
from certiformer.export.hf_folder import to_hf as to_hf
from certiformer.export.labels import Labels as Labels
from certiformer.export.labels import folder_labels as folder_labels
from certiformer.export.labels import program_labels as program_labels
from certiformer.export.onnx_file import to_onnx as to_onnx
from certiformer.export.torch_folder import to_torch as to_torch
from certiformer.export.write import KINDS as KINDS
from certiformer.export.write import default_place as default_place
from certiformer.export.write import write as write

make_callable(__name__, "certiformer.api.exporting", "export")  # `certiformer.export` is the verb, too
