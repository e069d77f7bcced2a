"""What a Transformer costs: parameters, memory, FLOPs, traffic, serving, money.

Given modules are complete. Exercise modules (napkin, params, ...) hold the functions you write;
`costlib.exercise` says which answer a call gets while they are empty.
"""
