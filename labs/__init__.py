"""The labs: one declarative spec each, and the loop around it.

In a notebook: `labs.check("matmul_flops")` judges your function as it stands in the file now,
`labs.hint("matmul_flops")` gives the first hint, `labs.card("matmul_flops")` shows what is asked.
"""

from labs.loop import card, check, hint, progress

__all__ = ["card", "check", "hint", "progress"]
