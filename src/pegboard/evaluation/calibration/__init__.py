"""Fits a fusion and a threshold to one deployment's queries; each is kept only if it is better than before.

Begin with `calibrate`, which fits and cross-validates fusions; `labelled_queries` scores queries, and `sweep` chooses
the threshold.
"""
