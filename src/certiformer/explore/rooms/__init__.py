"""The rooms: what a job of the page does. A module has `read(request)`, which says what may be asked, and
`run(request, folder, emit)`, which does it in a worker and returns the facts of the last event.

`folder` is chosen by the server: where a run is kept, or what was uploaded.
"""

ROOMS = {
    "approximate": "certiformer.explore.rooms.approximate",
    "break": "certiformer.explore.rooms.break_weight",
}
