"""State on a Redis server. Every change is one Lua script, which Redis runs atomically.

Begin with `database`, through which every script runs, then `pins`. A module holds the store of a kind of state and
its records for `archive`.
"""

from pegboard.stores.redis.archive import RedisArchive
from pegboard.stores.redis.audit_lines import RedisAudit
from pegboard.stores.redis.cache import RedisEmbeddings
from pegboard.stores.redis.database import RedisServer
from pegboard.stores.redis.habits import RedisHabits
from pegboard.stores.redis.kept_results import RedisResults
from pegboard.stores.redis.pins import RedisPins
from pegboard.stores.redis.rates import RedisRates
from pegboard.stores.redis.sessions import RedisReplicas, RedisSessions, RedisSigningKeys
from pegboard.stores.redis.spend import RedisSpend
from pegboard.stores.redis.statistics import RedisLessons, RedisStatistics

__all__ = [
    "RedisArchive",
    "RedisAudit",
    "RedisEmbeddings",
    "RedisHabits",
    "RedisLessons",
    "RedisPins",
    "RedisRates",
    "RedisReplicas",
    "RedisResults",
    "RedisServer",
    "RedisSessions",
    "RedisSigningKeys",
    "RedisSpend",
    "RedisStatistics",
]
