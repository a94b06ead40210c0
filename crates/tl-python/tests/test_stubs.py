from __future__ import annotations

import pathlib
import runpy


def test_the_types_of_transforms_are_those_of_the_table():
    script = pathlib.Path(__file__).parents[1] / "stubs.py"
    stubs = runpy.run_path(str(script))
    assert stubs["PATH"].read_text() == stubs["text"]()
