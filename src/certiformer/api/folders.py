"""`load` and `check`: run folders of every kind, and artifacts in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certiformer.artifact import Artifact
from certiformer.artifact.folder import read_candidates, read_folder
from certiformer.errors import BadInput
from certiformer.kernel.files import AUTOMATON, CONFIG, GATES, HITS, LEARNER, MACHINE, MODEL, PROGRAM

if TYPE_CHECKING:
    from certiformer.kernel.certificate import Certificate
    from certiformer.kernel.check import Verdict


def load(directory: str | Path) -> Artifact:
    """Open a run folder of any kind. It is read, and not checked: `check` verifies what it says.

    **Arguments:**

    - `directory`: the folder that `build`, `prove`, `compile` or `Artifact.save` wrote.

    >>> import certiformer
    >>> from tempfile import mkdtemp
    >>> folder = certiformer.compile("reverse", length=3).save(mkdtemp() + "/reverse")
    >>> certiformer.load(folder).run("cba"), certiformer.load(folder).certified, certiformer.check(folder).accepted
    (['a', 'b', 'c'], False, True)
    """
    return opened(*read_folder(directory), Path(directory))


def opened(certificate: Certificate, files: dict[str, bytes], folder: Path) -> Artifact:
    """The artifact that the files of a folder are."""
    subject, rows = _subject(certificate.subject, files, folder), read_candidates(folder)
    return Artifact(subject, certificate, files, folder.name, folder, candidates=rows, recorded=True)


def check(
    artifact: Artifact | str | Path,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Verdict:
    """Check a claim from the files alone; nothing that their maker said is believed.

    **Arguments:**

    - `artifact`: a run folder, or an artifact in memory.
    - `workers`: how many processes share the boxes (default: one for each core).
    - `progress`: called with the leaves confirmed and all leaves.

    The verdict has `accepted`, `outcome`, `sentence` (the claim), `reason`, and the proved bounds `lower` and `upper`. This
    runs in the process of its caller, whose modules it trusts; the command `certiformer check` has a process of its own.

    >>> import certiformer
    >>> verdict = certiformer.check(certiformer.build("x1**2", on="[0,1]", eps=0.1, method="ridge"))
    >>> verdict.accepted, verdict.outcome
    (True, 'proved')
    """
    from certiformer.kernel.check import check as check_folder
    from certiformer.kernel.check import check_files

    if isinstance(artifact, Artifact):
        return check_files(artifact.all_files(), workers=workers, progress=progress)
    return check_folder(artifact, workers=workers, progress=progress)


def run(
    artifact: Artifact | str | Path,
    tokens: Any = None,
    *,
    steps: int | None = None,
    context: Any = None,
    query: Any = None,
    batch: Sequence[Any] | None = None,
) -> list[Any]:
    """What a transformer answers to one input, as a list: `load(artifact).run(tokens)`.

    **Arguments:**

    - `artifact`: a run folder, or an artifact in memory.
    - `tokens`: the input, see `Artifact.run`; a learner has none.
    - `steps`: of a machine: how many steps at most (default: 1000, or the horizon).
    - `context`: of a learner: the rows to learn from, a pair (x, y) or a `"data.csv"` whose last column is the answer.
    - `query`: of a learner: what to predict for, rows of numbers, `"0.3,1.2"` or a `"file.csv"`.
    - `batch`: instead of `tokens`: several inputs, answered by a list each; those of a program run together.

    >>> import certiformer
    >>> certiformer.run(certiformer.compile("sort", vocab=[1, 2, 3], length=4), [3, 1, 2])
    [1, 2, 3]
    """
    options = {name: value for name, value in (("steps", steps), ("context", context)) if value is not None}
    answering = artifact if isinstance(artifact, Artifact) else load(artifact)
    if batch is not None:
        if tokens is not None or query is not None:
            raise BadInput("--batch holds all inputs; leave the other one away")
        return answering.run_many(batch, **options)
    return answering.run(tokens if query is None else query, **options)


def show(artifact: Artifact | str | Path) -> None:
    """Print what an artifact or a run folder claims, what became of it, and what is not claimed.

    **Arguments:**

    - `artifact`: a run folder, or an artifact in memory.

    >>> import certiformer
    >>> certiformer.show(certiformer.compile("reverse", length=3))
    certified  For every input of 1 to 3 tokens of a vocabulary of 3 ...
    """
    (artifact if isinstance(artifact, Artifact) else load(artifact)).show()


def _subject(subject: str, files: dict[str, bytes], folder: Path) -> Any:
    """What the files of a folder are about; each kind has its own reader."""
    if subject == PROGRAM:
        from certiformer.compiler.programs.program import TokenProgram

        return TokenProgram(files)
    if subject == HITS:
        raise BadInput(f"{folder} is a recommender; certiformer recommend top answers, and certiformer check checks it")
    if subject not in (MACHINE, AUTOMATON, GATES, LEARNER):
        from certiformer.search.approximation import Approximation

        return Approximation.from_files(files)
    from certiformer.model import from_bytes

    model = from_bytes(files[CONFIG], files[MODEL], folder)
    if subject == MACHINE:
        from certiformer.compiler.machines import machine_from_files

        return machine_from_files(files, model)
    if subject == AUTOMATON:
        from certiformer.compiler.automata import WordReader

        return WordReader.from_files(files, model)
    if subject == GATES:
        from certiformer.compiler.circuits import GateWriter

        return GateWriter.from_files(files, model)
    from certiformer.compiler.incontext import ContextLearner

    return ContextLearner.from_files(files, model)
