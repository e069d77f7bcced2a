"""The labs: one declarative spec each, and the loop around it.

In a notebook: `labs.check("matmul_flops")` judges your function as it stands in the file now,
`labs.hint("matmul_flops")` gives the first hint, `labs.card("matmul_flops")` shows what is asked.
`labs.checklist()` shows what of the success criteria of Part I is met.
`table`, `mistakes`, `failures` and `gate` are what the pages are made with.
"""

from labs.loop import card, check, failures, gate, hint, mistakes, progress, table
from labs.success import checklist

__all__ = ["card", "check", "checklist", "failures", "gate", "hint", "mistakes", "progress", "table"]
