"""From a target and an epsilon to a proved transformer, and the run folder."""

from certiformer.search.build import build as build
from certiformer.search.build import prove as prove
from certiformer.search.estimate import dry_run as dry_run
from certiformer.search.estimate import dry_run_prove as dry_run_prove
from certiformer.search.finite import build_table as build_table
from certiformer.search.finite import table_from_model as table_from_model
from certiformer.search.request import Options as Options
from certiformer.search.run import Run as Run
from certiformer.search.run import load_run as load_run
from certiformer.search.sequences import build_sequences as build_sequences
from certiformer.search.sequences import build_sort as build_sort
from certiformer.search.under_mask import build_under_mask as build_under_mask
