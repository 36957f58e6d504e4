"""Spoilt packets: what clients or servers might send when they are broken or mean harm.

Every case is made from a seed and its number, so one that fails is repeated by `python -m tests.fuzz --seed S
--only N`. The conversations that are spoilt stand in `corpus/`.
"""
