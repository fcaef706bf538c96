"""What a policy learns from the outcomes of its calls: the averages of EHRR eq. 8, of servers and of tools."""

from __future__ import annotations

import numpy as np

from pegboard.averages import PRIOR, SMOOTHING, after, ema
from pegboard.model import ToolStatistics
from pegboard.routing.economics import Estimates
from pegboard_bench.simulate.calls import Happened
from pegboard_bench.simulate.world import Numbers, Places

CONNECTION = 0.5
"""L_conn, seconds, of a server that was never called."""


class Learnt:
    """Estimates of s servers and n tools, beginning with the priors that Pegboard ships; ``called`` has shape (n,)."""

    def __init__(self, servers: int, server_of: Places) -> None:
        self.servers = _priors(servers)
        self.tools = _priors(len(server_of))
        self.connection: Numbers = np.full(servers, CONNECTION)
        self.called = np.zeros(len(server_of), np.bool_)
        self._server_of = server_of

    def observe(self, place: int, happened: Happened) -> None:
        server = int(self._server_of[place])
        _update(self.servers, server, happened)
        _update(self.tools, place, happened)
        self.called[place] = True
        if happened.waited:
            self.connection[server] = ema(self.connection[server], happened.waited, SMOOTHING.latency)

    def with_servers(self) -> Estimates:
        """Of tools; of one that was never called, what is known of its server."""
        of, called = self._server_of, self.called
        return Estimates(
            success=np.where(called, self.tools.success, self.servers.success[of]),
            variance=np.where(called, self.tools.variance, self.servers.variance[of]),
            failure=self.servers.failure[of],
            latency=np.where(called, self.tools.latency, self.servers.latency[of]),
        )


def _priors(size: int) -> Estimates:
    return Estimates(
        success=np.full(size, PRIOR.success),
        variance=np.full(size, PRIOR.variance),
        failure=np.full(size, PRIOR.failure),
        latency=np.full(size, PRIOR.latency),
    )


def _update(known: Estimates, place: int, happened: Happened) -> None:
    before = ToolStatistics(
        success=float(known.success[place]),
        variance=float(known.variance[place]),
        failure=float(known.failure[place]),
        latency=float(known.latency[place]),
    )
    now = after(before, happened.outcome, SMOOTHING)
    known.success[place], known.variance[place] = now.success, now.variance
    known.failure[place], known.latency[place] = now.failure, now.latency
