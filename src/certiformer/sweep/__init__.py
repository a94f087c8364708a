"""Many jobs: in this process, on all cores, or on a Ray cluster; and the store where their results land."""

from certiformer.sweep.engines import ENGINES as ENGINES
from certiformer.sweep.job import Job as Job
from certiformer.sweep.job import Row as Row
from certiformer.sweep.ledger import StoreFault as StoreFault
from certiformer.sweep.query import query as query
from certiformer.sweep.query import read_table as read_table
from certiformer.sweep.query import to_csv as to_csv
from certiformer.sweep.run import Progress as Progress
from certiformer.sweep.run import run_jobs as run_jobs
from certiformer.sweep.store import Store as Store
from certiformer.sweep.tracker import Tracker as Tracker
from certiformer.sweep.trackers import open_tracker as open_tracker
