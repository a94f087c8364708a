"""Files that are not opened: pickles can run code when they are read, so there is a sentence with a converting
command instead."""

from __future__ import annotations

from pathlib import Path

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".npy", ".npz", ".h5", ".msgpack", ".joblib")


def pickle_sentence(path: Path) -> str:
    """Why the file is refused, and what turns it into one that is not."""
    target = path.with_suffix(".safetensors").name
    return (
        f'{path.name} may run code when it is opened, so it is not; convert it where you trust it: python -c "import torch;'
        f" from safetensors.torch import save_file; save_file({{k: v.clone().contiguous() for k, v in"
        f" torch.load('{path.name}', weights_only=True, map_location='cpu').items()}}, '{target}')\""
    )
