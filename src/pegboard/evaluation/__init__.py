"""Measures how well tools are ranked, and fits the ranking to a deployment's own queries.

Begin with `ranking_metrics`, which scores one ranking, and `datasets`, which reads queries and their labels;
`calibration` is what `pegboard calibrate` runs.
"""
