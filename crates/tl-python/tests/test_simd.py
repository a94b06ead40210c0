"""The environment variable that selects an instruction set."""

import os
import subprocess
import sys

import pytest


def imported(level):
    environment = {**os.environ, "TURBOLOADER_SIMD": level}
    code = "import turboloader"
    return subprocess.run([sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE)


@pytest.mark.parametrize("level", ["", "scalar"])
def test_a_level_of_this_cpu_is_accepted(level):
    assert imported(level).returncode == 0


def test_another_name_is_refused_at_import():
    result = imported("mmx")
    assert result.returncode == 1
    message = b"ValueError: TURBOLOADER_SIMD=mmx: expected a level of this CPU: scalar"
    assert message in result.stderr
