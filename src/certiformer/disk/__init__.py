"""Writing to the disk so that a kill at any moment leaves the old result or the new one, whole.

| what | how |
|---|---|
| one file | `write_atomically`, `put_file`: written beside its place under a hidden name, brought to the disk, renamed |
| a folder | `Workplace`, `put_folder`: filled in a hidden folder beside its place, then exchanged in one step |
| what nobody keeps | `scratch`: a hidden folder that goes away at the end |

Every hidden name ends in `.certiformer` or `.certiformer-partial` and is locked while its process lives, so that two
writers never meet and the next writer into the same parent folder removes what killed ones left.
"""

from certiformer.disk.files import put_file as put_file
from certiformer.disk.files import refuse_taken_file as refuse_taken_file
from certiformer.disk.files import write_atomically as write_atomically
from certiformer.disk.places import check_place as check_place
from certiformer.disk.places import names_in as names_in
from certiformer.disk.places import refuse_own_input as refuse_own_input
from certiformer.disk.workplace import InUse as InUse
from certiformer.disk.workplace import Workplace as Workplace
from certiformer.disk.workplace import can_go_on as can_go_on
from certiformer.disk.workplace import claimed as claimed
from certiformer.disk.workplace import is_in_use as is_in_use
from certiformer.disk.workplace import put_folder as put_folder
from certiformer.disk.workplace import recover as recover
from certiformer.disk.workplace import scratch as scratch
