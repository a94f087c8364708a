"""The same transformer for other programs: an ONNX file, a plain PyTorch module, a Hugging Face folder.

None of the libraries is needed before its own format is asked for, and none is needed to write a folder.
"""

from certiformer.export.hf_folder import to_hf as to_hf
from certiformer.export.onnx_file import to_onnx as to_onnx
from certiformer.export.torch_folder import to_torch as to_torch
from certiformer.export.write import KINDS as KINDS
from certiformer.export.write import default_place as default_place
from certiformer.export.write import write as write
