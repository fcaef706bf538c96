"""Named steps from one shape of a store to the next: each is applied once, in order, under the store's own lock."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pegboard.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Migration:
    """A step that the store remembers by its name; what was released is never changed, only followed by another."""

    name: str
    statements: tuple[str, ...] = ()


def outstanding(known: Sequence[Migration], applied: Collection[str], store: str) -> list[Migration]:
    """The steps that ``store`` has not seen, in order. Raises ConfigError where a newer program has changed it.

    >>> [step.name for step in outstanding([Migration("a"), Migration("b")], {"a"}, "The file 'x'")]
    ['b']
    """
    unknown = sorted(set(applied) - {step.name for step in known})
    if unknown:
        raise ConfigError(
            f"{store} was changed by a newer version of Pegboard ({', '.join(map(repr, unknown))}).",
            remedy="Upgrade Pegboard here, or give this version a store of its own.",
        )
    return [step for step in known if step.name not in applied]
