"""What a downloaded page says where MyST is unknown: the same, in plain Markdown."""

import re
import sys
from pathlib import Path

import pytest
from pybtex.database import parse_file

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "_ext"), str(ROOT / "tools")]
import plain_notebook  # noqa: E402
import record  # noqa: E402

ENTRIES = parse_file(ROOT / "chapters/references.bib").entries


@pytest.mark.parametrize("myst, plain", [
    ("(a-label)=\n# A", '<a id="a-label"></a>\n\n# A'),
    ("a {term}`FLOP`, {term}`FLOPs <FLOP>`", "a FLOP, FLOPs"),
    ("{ref}`this section <x>` and {math}`x^2`", "this section and $x^2$"),
    ("[Chapter 5](w-ch5), [here](#x), [there](https://example.org)", "Chapter 5, [here](#x), [there](https://example.org)"),
    ("`{term}`, `[a](b)`", "`{term}`, `[a](b)`"),
    ("{cite:t}`geva2021` and {cite:p}`jouppi2017,nvidiah100`",
     "[Geva et al. (2021)](https://arxiv.org/abs/2012.14913) and ([Jouppi et al., 2017](https://arxiv.org/abs/1704.04760); "
     "[NVIDIA, 2023](https://www.nvidia.com/en-us/data-center/h100/))"),
    (":::{admonition} Predict\n:class: tip\nHow many?\n:::\nThen", "> **Predict**\n>\n> How many?\nThen"),
    ("```{note}\nA {term}`FLOP`.\n```", "> **Note**\n>\n> A FLOP."),
    (":::{dropdown} Why\nBecause.\n:::", "<details><summary>Why</summary>\n\nBecause.\n\n</details>"),
    ("::::{admonition} Q\n:::{dropdown} A\nYes.\n:::\n::::",
     "> **Q**\n>\n> <details><summary>A</summary>\n>\n> Yes.\n>\n> </details>"),
    ("```python\n{term}`x`\n:::{note}\n```\n{term}`x`", "```python\n{term}`x`\n:::{note}\n```\nx"),
    ("```{math}\n:label: eq\nx^2\n```", "$$\nx^2\n$$"),
    ("::::{grid} 1 1\n:gutter: 3\n:::{grid-item-card} Alone\nText.\n:::\n::::", "**Alone**\n\nText."),
])
def test_myst_becomes_markdown(myst, plain):
    assert plain_notebook.plain(myst, ENTRIES) == plain


@pytest.mark.parametrize("page", record.pages(ROOT))
def test_no_page_leaves_myst_behind(page):
    cells, _ = record.cells((ROOT / page).read_text("utf8"))
    for cell in cells:
        if cell.cell_type == "markdown":
            text = re.sub(r"(?s)```.*?```|`[^`]*`", "", re.sub(r"\{([\w:]+)\}`", r"ROLE", plain_notebook.plain(cell.source, ENTRIES)))
            assert not re.search(r":::|ROLE|^\([\w-]+\)=", text, re.M), cell.source
