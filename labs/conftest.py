"""`pytest labs` tests what you wrote: LAB_MODULE is costlib unless you say otherwise."""

import os

os.environ.setdefault("LAB_MODULE", "costlib")
