"""Files that are not opened: pickles can run code when they are read. The sentence has a command that converts them."""

from __future__ import annotations

from pathlib import Path

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".npy", ".npz", ".h5", ".msgpack", ".joblib")
# The names in it are the user's to fill in: that of the file could itself be a command.
COMMAND = (
    'python -c "import sys, torch; from safetensors.torch import save_file; save_file({k: v.clone().contiguous() for k, v'
    " in torch.load(sys.argv[1], weights_only=True, map_location='cpu').items()}, sys.argv[2])\" OLD NEW.safetensors"
)


def pickle_sentence(path: Path) -> str:
    """Why the file is refused, and what turns it into one that is not."""
    return f"{path.name} may run code when it is opened, so it is not; convert it where you trust it: {COMMAND}"
