from upstream_specs import fleet_of

__all__ = ["fleet_of"]
