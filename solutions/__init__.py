"""The reference answer of every exercise, one module per exercise module of costlib."""
