"""State on a Redis server: every change is one Lua script, which Redis runs alone."""

from pegboard.stores.redis.archive import RedisArchive
from pegboard.stores.redis.embeddings import RedisEmbeddings
from pegboard.stores.redis.lessons import RedisLessons
from pegboard.stores.redis.pins import RedisPins
from pegboard.stores.redis.replicas import RedisReplicas
from pegboard.stores.redis.server import RedisServer
from pegboard.stores.redis.sessions import RedisSessions
from pegboard.stores.redis.signing_keys import RedisSigningKeys
from pegboard.stores.redis.spend import RedisSpend
from pegboard.stores.redis.statistics import RedisStatistics

__all__ = [
    "RedisArchive",
    "RedisEmbeddings",
    "RedisLessons",
    "RedisPins",
    "RedisReplicas",
    "RedisServer",
    "RedisSessions",
    "RedisSigningKeys",
    "RedisSpend",
    "RedisStatistics",
]
