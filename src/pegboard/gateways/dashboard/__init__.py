"""The dashboard at `/ui` of `pegboard serve`: pages that only read.

`dashboard_app` takes requests, `dashboard_access` says who may look, `activity_pages` and `board_pages` gather what a
page shows, `page_templates` renders it. Begin with `dashboard_app`.
"""
