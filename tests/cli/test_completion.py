"""`certiformer completion`: a shell that reads the script completes verbs and flags."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from certiformer.cli.main import VERBS

COMPLETE = """source {script}
COMP_WORDS=({words}); COMP_CWORD={last}; COMP_LINE="{words}"; COMP_POINT=${{#COMP_LINE}}
{function}
printf "%s\n" "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory):
    from certiformer.cli.completion import script

    path = tmp_path_factory.mktemp("completion") / "certiformer"
    path.write_text(script("bash"))
    return path


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "wanted"),
    [("certiformer cu", {"curve"}), ("certiformer export --", {"--to", "--out"}), ("certiformer rates jack", set())],
)
def test_bash_completes_verbs_and_flags(bash_script, words, wanted):
    registered = [line for line in bash_script.read_text().splitlines() if line.startswith("complete ")]
    function = registered[-1].split("-F ")[1].split()[0]
    program = COMPLETE.format(script=bash_script, words=words, last=len(words.split()) - 1, function=function)
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, timeout=60)
    offered = set(done.stdout.split())
    assert wanted <= offered and not offered & {"prove", "jackson"}, done.stderr


def test_the_command_prints_the_script(cli):
    done = cli("completion", "zsh")
    assert done.code == 0 and done.out.startswith("#compdef certiformer")
    assert all(f"'{verb}'" in done.out for verb in VERBS)
    refused = cli("completion", "fish")
    assert refused.code == 2 and "fish" in refused.err
    assert "certiformer completion bash" in cli("completion", "--help").out
