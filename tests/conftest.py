"""The same examples on every run and every machine, and nothing written beside the tests."""

from hypothesis import settings

settings.register_profile("course", derandomize=True, database=None, deadline=None, max_examples=200)
settings.load_profile("course")
