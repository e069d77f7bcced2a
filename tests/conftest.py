"""The same examples on every run and every machine, and nothing written beside the tests."""

from importlib.util import find_spec

from hypothesis import settings

# What observes running models is for the environment that has them: make observe.
collect_ignore = [] if find_spec("torch") else ["observe"]

settings.register_profile("course", derandomize=True, database=None, deadline=None, max_examples=200)
settings.load_profile("course")
