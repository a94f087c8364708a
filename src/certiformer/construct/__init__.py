"""From a target and an epsilon to weights and a proof tree, one module per construction."""

from certiformer.construct import voronoi as voronoi
