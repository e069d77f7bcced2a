"""The labs: one declarative spec each, and the loop around it.

In a notebook: `labs.check("matmul_flops")` judges your function as it stands in the file now,
`labs.hint("matmul_flops")` gives the first hint, `labs.card("matmul_flops")` shows what is asked.
`table`, `mistakes`, `failures` and `gate` are what the pages are made with.
"""

from labs.loop import card, check, failures, gate, hint, mistakes, progress, table

__all__ = ["card", "check", "failures", "gate", "hint", "mistakes", "progress", "table"]
