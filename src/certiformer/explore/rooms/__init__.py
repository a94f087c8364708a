"""The rooms: what a job of the page does. A module has `read(request)`, which says what may be asked, and
`run(request, folder, emit)`, which does it in a worker and returns the facts of the last event.

`folder` is chosen by the server: where a run is to be kept, a run of this server, what was uploaded, or what was named
when the server began.
"""

ROOMS = {
    "approximate": "certiformer.explore.rooms.approximate",
    "break": "certiformer.explore.rooms.break_weight",
    "attend": "certiformer.explore.rooms.attend",
    "program": "certiformer.explore.rooms.program",
    "machine": "certiformer.explore.rooms.machine",
    "rates": "certiformer.explore.rooms.rates",
    "audit": "certiformer.explore.rooms.audit",
    "trust": "certiformer.explore.rooms.trust",
}
KEEPING = ("approximate", "program", "machine")  # their result is a run folder
