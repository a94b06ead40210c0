#!/usr/bin/env python3
"""Runs the test suite of the original turboloader against `turboloader.compat`.

usage: original_tests.py FOLDER [PYTEST ARGUMENT...]

FOLDER is the unpacked source distribution of turboloader 2.39.0:
`pip download --no-binary :all: --no-deps turboloader==2.39.0`, with setuptools, wheel and pybind11 as wheels.
Run it with a Python that has our package, pytest, pillow, torch and torchvision. The modules `turboloader`,
`_turboloader` and their submodules are those of `compat` in this process; no file of the suite is copied or changed.

After pytest's own report, a table counts the results by file.
"""
import collections
import importlib
import importlib.abc
import importlib.machinery
import pathlib
import sys

import pytest

# What tests import from `turboloader`, and compat has.
SUBMODULES = ("pytorch_compat", "sequence", "tbl")


class Submodules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `turboloader.sequence` in compat, also where a test has forgotten that it was imported."""

    def find_spec(self, fullname, path, target=None):
        package, _, name = fullname.rpartition(".")
        if package == "turboloader" and name in SUBMODULES:
            return importlib.machinery.ModuleSpec(fullname, self)
        return None

    def create_module(self, spec):
        module = importlib.import_module(f"turboloader.compat.{spec.name.rpartition('.')[2]}")
        self.own = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self.own


class Substitution:
    """A plugin of pytest: puts compat in the place of the original, and counts results."""

    def __init__(self):
        self.results = {}

    def pytest_configure(self, config):
        compat = importlib.import_module("turboloader.compat")
        sys.meta_path.insert(0, Submodules())
        sys.modules["turboloader"] = sys.modules["_turboloader"] = compat

    def pytest_runtest_logreport(self, report):
        # A test has three reports; the worst counts.
        before = self.results.get(report.nodeid, "passed")
        outcome = "error" if report.failed and report.when != "call" else report.outcome
        if before == "passed" and (report.when == "call" or outcome != "passed"):
            self.results[report.nodeid] = outcome

    def pytest_collectreport(self, report):
        if report.failed:
            self.results[report.nodeid] = "error"
        elif report.skipped:
            self.results[report.nodeid] = "skipped"

    def pytest_terminal_summary(self, terminalreporter):
        files = collections.defaultdict(collections.Counter)
        for test, outcome in self.results.items():
            files[pathlib.PurePath(test.partition("::")[0]).name][outcome] += 1
        total = sum(files.values(), collections.Counter())
        columns = ("passed", "failed", "error", "skipped")
        write = terminalreporter.write_line
        write(f"{'file':<42}" + "".join(f"{column:>9}" for column in columns))
        for name, counts in [*sorted(files.items()), ("all", total)]:
            write(f"{name:<42}" + "".join(f"{counts[column]:>9}" for column in columns))


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    tests = pathlib.Path(sys.argv[1]) / "tests"
    if not tests.is_dir():
        sys.exit(f"{tests} is not a folder: pass the unpacked source distribution")
    # The suite's folder has no conftest, and the original's sources next to it must not be imported.
    options = ["--import-mode=importlib", "-p", "no:cacheprovider", "--rootdir", str(tests), "-q", "--continue-on-collection-errors"]
    sys.exit(pytest.main([*options, str(tests), *sys.argv[2:]], plugins=[Substitution()]))


if __name__ == "__main__":
    main()
