"""What the site shows besides docs/: the README, the notebook and the reference of Python.

Links that lead out of docs/ become links to the repository.
"""

from __future__ import annotations

import ast
import json
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "crates" / "tl-python" / "python" / "turboloader"

LINK = re.compile(r"(\]\()([^)#\s]+)")

# How much a page's words count in the search, beside 1. Records of measurements and notes for
# contributors have every word of the product.
BOOSTS = {
    "architecture.md": 0.1,
    "benchmarks.md": 0.1,
    "features.md": 2,
    "index.md": 0.5,
    "migration/": 0.5,
    "pipeline/": 2,
    "python-compat.md": 0.5,
    "python.md": 4,
    "reference/": 2,
    "reference/compat.md": 0.3,
    "remote.md": 2,
    "simd.md": 0.1,
}

# The pages of the reference, with the modules whose `__all__` lists what they show.
REFERENCE = {
    "settings": ("Settings of loaders", "turboloader.settings"),
    "transforms": ("Transforms", "turboloader.transforms"),
    "fields": ("Fields of samples", "turboloader.fields"),
    "exceptions": ("Exceptions", "turboloader.exceptions"),
    "compat": ("The original's interface", "turboloader.compat"),
    "torch": ("PyTorch", "turboloader.torch"),
    "ray": ("Ray", "turboloader.ray"),
}

# Classes whose constructor griffe does not see: `__new__`, or overloads for type checkers alone.
# It would warn of each parameter in their docstrings.
UNSEEN = {"turboloader.DataLoader", "turboloader.TblReader", "turboloader.TblWriter"}
UNCHECKED = """
    options:
      docstring_options:
        warn_unknown_params: false
        warn_missing_types: false"""


def on_config(config: MkDocsConfig) -> None:
    """Put the reference in the navigation."""
    pages: list[dict[str, str]] = [{"Data sets and loaders": "reference/turboloader.md"}]
    pages += [{title: f"reference/{name}.md"} for name, (title, _) in REFERENCE.items()]
    entry = next(entry for entry in config.nav if "Python reference" in entry)
    entry["Python reference"] = pages


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made here, instead of the notebook's file."""
    notebook = files.get_file_from_path("quickstart.ipynb")
    files.remove(notebook)
    made = {
        "index.md": (ROOT / "README.md").read_text(),
        "quickstart.md": pages_of_notebook(ROOT / "docs" / "quickstart.ipynb"),
        **reference(),
    }
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links that lead out of docs/ to the repository, and say how much the page counts."""
    del files
    path = page.file.src_uri
    boosts = [boost for start, boost in sorted(BOOSTS.items()) if path.startswith(start)]
    page.meta["search"] = {"boost": boosts[-1] if boosts else 1}
    is_readme = path == "index.md"
    folder = "" if is_readme else posixpath.join("docs", posixpath.dirname(path))

    def pointed(link: re.Match[str]) -> str:
        start, target = link.groups()
        if "://" in target or target.startswith("mailto:"):
            return link[0]
        target = target.replace("quickstart.ipynb", "quickstart.md")
        place = posixpath.normpath(posixpath.join(folder, target))
        if not place.startswith("docs/"):
            return f"{start}{config.extra['repository']}/blob/main/{place}"
        return f"{start}{place.removeprefix('docs/')}" if is_readme else f"{start}{target}"

    return LINK.sub(pointed, markdown)


def exported(module: str) -> list[str]:
    """Return the names in a module's `__all__`, without running it."""
    path = ROOT / "crates/tl-python/python" / module.replace(".", "/")
    if path.is_dir():
        path = path / "__init__.py"
    else:
        # Classes that are made when the module is imported are in its stub alone.
        path = next(file for file in map(path.with_suffix, (".pyi", ".py")) if file.exists())
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names = [name.value for name in node.value.elts if isinstance(name, ast.Constant)]
            return [name for name in names if name != "__version__"]
    return []


def reference() -> dict[str, str]:
    """Return a page for each module, by its path: an entry for each name."""
    pages = {}
    for page, (title, module) in REFERENCE.items():
        parts = [f"# {title}", f"`{module}`"]
        if page == "transforms":
            parts.append("![Each operation on one photograph](../operations.png)")
        parts += [f"::: {module}.{name}" for name in exported(module)] or [f"::: {module}"]
        pages[f"reference/{page}.md"] = "\n\n".join(parts)
    # `from .settings import *`, and the like: those have pages of their own.
    shared = {
        name
        for page in ("settings", "transforms", "fields", "exceptions")
        for name in exported(f"turboloader.{page}")
    }
    own = [name for name in exported("turboloader") if name not in shared | set(REFERENCE)]
    names = [f"turboloader.{name}" for name in own]
    entries = [f"::: {name}{UNCHECKED if name in UNSEEN else ''}" for name in names]
    head = ["# Data sets and loaders", "`turboloader`"]
    pages["reference/turboloader.md"] = "\n\n".join([*head, *entries])
    return pages


def pages_of_notebook(path: Path) -> str:
    """Return the cells of a notebook and what they printed or drew."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            text = "".join(output.get("text", data.get("text/plain", "")))
            if "image/png" in data:
                image = "".join(data["image/png"]).replace("\n", "")
                parts.append(f"![](data:image/png;base64,{image})")
            elif text:
                parts.append(f"```text\n{text}\n```")
    return "\n\n".join(parts)
