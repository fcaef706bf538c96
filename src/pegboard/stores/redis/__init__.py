"""State on a Redis server: every change is one Lua script, which Redis runs alone."""

from pegboard.stores.redis.embeddings import RedisEmbeddings
from pegboard.stores.redis.pins import RedisPins
from pegboard.stores.redis.server import RedisServer
from pegboard.stores.redis.sessions import RedisSessions
from pegboard.stores.redis.spend import RedisSpend
from pegboard.stores.redis.statistics import RedisStatistics

__all__ = [
    "RedisEmbeddings",
    "RedisPins",
    "RedisServer",
    "RedisSessions",
    "RedisSpend",
    "RedisStatistics",
]
