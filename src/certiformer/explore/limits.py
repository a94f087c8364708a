"""How much a request, a job and the server may take; every number is said on the page or in the documentation."""

from __future__ import annotations

MB = 1_000_000

BODY_BYTES, BODY_SECONDS = 64_000, 10.0
UPLOAD_BYTES, UPLOAD_SECONDS = 600 * MB, 600.0
UPLOAD_FILES = 40
KEPT_RUNS, KEPT_UPLOADS = 100, 4  # the oldest ones go first
WAITING = 500  # jobs in the queue
JOB_SECONDS = 180.0  # from when a worker takes it
JOB_MEMORY = 4_000 * MB
EVENT_BYTES = 32 * MB
JOBS_OF_A_WORKER = 200  # then a fresh process takes over, so that nothing piles up
