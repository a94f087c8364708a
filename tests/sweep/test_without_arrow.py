"""Without Apache Arrow the package works, and a study says in one sentence what to install."""

from __future__ import annotations

import subprocess
import sys

WITHOUT = "import sys; sys.modules['pyarrow'] = None; "


def run_without(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WITHOUT + code, *arguments], capture_output=True, text=True)


def test_studies_are_listed_and_explained():
    code = "from certiformer.cli.main import main; sys.exit(main(['rates']) or main(['rates', 'jackson', '--help']))"
    done = run_without(code)
    assert done.returncode == 0 and "trainability" in done.stdout and "--mh" in done.stdout, done.stderr


def test_a_study_says_what_to_install(tmp_path):
    code = "from certiformer.cli.main import main; sys.exit(main(['rates', 'jackson', '--out', sys.argv[1]]))"
    done = run_without(code, str(tmp_path / "study"))
    assert done.returncode == 2 and 'pip install "certiformer[rates]"' in done.stderr, done.stderr
    assert not (tmp_path / "study").exists()


def test_building_does_not_miss_it():
    code = (
        "import certiformer; artifact = certiformer.build('x1', on=(0, 1), eps=0.1, method='gather');"
        "print(artifact.certified, sys.modules['pyarrow'])"
    )
    assert run_without(code).stdout.split() == ["True", "None"]
