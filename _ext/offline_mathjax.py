"""Serves MathJax from the book itself, out of the installed sphinx-mathjax-offline.

Only what a page can ask for is copied: the component, its fonts, and the TeX extensions that it loads
on demand (without them one \\cancel leaves every formula of its page unrendered). The package's own
extension would copy all of its 24 MB.
"""

from importlib.metadata import distribution
from pathlib import Path
from shutil import copy, copytree

PARTS = ["tex-chtml.js", "output/chtml/fonts/woff-v2", "input/tex/extensions"]


def copy_mathjax(app, error):
    if error or app.builder.format != "html":
        return
    source = Path(distribution("sphinx-mathjax-offline").locate_file("sphinx-mathjax-offline/static/mathjax"))
    target = Path(app.outdir, "_static", "mathjax")
    for part in PARTS:
        (target / part).parent.mkdir(parents=True, exist_ok=True)
        if (source / part).is_dir():
            copytree(source / part, target / part, dirs_exist_ok=True)
        else:
            copy(source / part, target / part)


def setup(app):
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
