"""The labs: one file of data each, and the loop around it.

In a notebook: `labs.check("matmul_flops")` judges your function as it stands in the file now,
`labs.hint("matmul_flops")` gives the first hint, `labs.card("matmul_flops")` shows what is asked.
"""

import sys

if sys.version_info < (3, 11):
    sys.exit("The labs need Python 3.11 or later; this is %d.%d. Name another: make lab LAB=01 PYTHON=python3.12" % sys.version_info[:2])

from labs.loop import card, check, gate, hint, progress, table  # noqa: E402

__all__ = ["card", "check", "gate", "hint", "progress", "table"]
