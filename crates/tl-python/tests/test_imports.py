from __future__ import annotations

import subprocess
import sys


def test_importing_the_package_imports_no_other():
    code = "import sys, turboloader; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    command = [sys.executable, "-I", "-c", code]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    before = subprocess.run(
        [sys.executable, "-I", "-c", code.replace(", turboloader", "")],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.split()
    others = set(said) - set(before) - set(sys.stdlib_module_names)
    assert others == {"turboloader"}
