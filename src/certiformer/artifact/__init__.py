"""What everything here makes: an ordinary transformer with a claim that the kernel can check.

`Artifact` is the one product, whatever was asked for; what its claim is about, a function, a program, a machine, is a
`Subject` of its own kind. `folder` reads and writes run folders, `export` hands the transformer to other programs.
"""

from __future__ import annotations

from certiformer.artifact.artifact import Artifact as Artifact
from certiformer.artifact.artifact import Subject as Subject
