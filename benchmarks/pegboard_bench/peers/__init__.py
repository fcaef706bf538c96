"""Other tool rankers over the same sets, each run by an environment of its own (`scripts/install_peers.py`).

`peer_rows` gives their rankings, as methods `peer:NAME`. `python -m pegboard_bench.peers` tries each on six tools.
"""

from pegboard_bench.peers.rows import PeerRows, asked, peer_rows
from pegboard_bench.peers.runner import PeerError, PeerRun, rank
from pegboard_bench.peers.table import BASELINES, PEERS, Peer

__all__ = ["BASELINES", "PEERS", "Peer", "PeerError", "PeerRows", "PeerRun", "asked", "peer_rows", "rank"]
