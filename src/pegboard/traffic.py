"""What traffic teaches: sums over the turns of a key's conversations with models, and the means that they come to."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

PRIOR_TURNS = 3
"""Turns of a conversation that weigh as much as what was expected of it."""
USUAL_TOTAL = 5000.0
"""Tokens of tools from which on the priors of what is wanted of them hold."""
PRIOR_WEIGHT = 0.1
"""Conversations, or turns, that a prior counts as: little, for nothing is decided before several were seen."""
MOST = 1000.0
"""Conversations after which what was seen first counts half, and half again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What the conversations of one key, model, system prompt and set of tools are like: learnt, or the priors.

    ``turns`` of a conversation. Tokens: of the ``system`` prompt, ``asked`` in the first message, ``growth`` that a
    later turn adds, ``wanted`` of the tools relevant to a turn, ``added`` and ``called`` of those that a later turn
    finds relevant, and calls, for the first time in its conversation. Chances: a turn ``returns`` within the lifetime;
    it brings ``news``, a relevant tool that is neither relevant to the turn before nor called yet; within the lifetime
    before a conversation begins there was a request of another one (``kept``), or one that began with the same relevant
    tools (``alike``).
    """

    turns: float = 10.0
    system: float = 800.0
    asked: float = 100.0
    growth: float = 500.0
    wanted: float = 1000.0
    added: float = 150.0
    called: float = 50.0
    returns: float = 0.9
    news: float = 0.15
    alike: float = 0.0
    kept: float = 0.0

    def remaining(self, before: int) -> float:
        """Turns to come, this one included, after ``before``; what outlives the mean lasts as long again."""
        return self.turns - before if before < self.turns else float(before)

    def revised(self, changed: int, later: int) -> Traffic:
        """In a conversation of which ``changed`` of the ``later`` turns after its first have brought news."""
        return replace(self, news=(PRIOR_TURNS * self.news + changed) / (PRIOR_TURNS + later))


PRIORS = Traffic()
"""What is taken for granted of a key that nothing is known of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """One turn as it came. Tokens: ``ahead`` are new in any case, ``wanted`` those of the relevant tools, ``added`` and
    ``called`` of those relevant, and called on the turn before, for the first time in the conversation.

    ``first`` turns of a conversation say nothing of ``changed``: whether something relevant was neither relevant to the
    turn before nor called yet. ``returned``: within the lifetime. Of first turns: within the lifetime before, another
    conversation had a request (``kept``), or began with the same relevant tools (``alike``).
    """

    first: bool
    ahead: float
    wanted: float
    added: float = 0.0
    called: float = 0.0
    changed: bool = False
    returned: bool = True
    kept: bool = False
    alike: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Sums. One for each key, model and set of tools."""

    requests: float = 0.0
    conversations: float = 0.0
    later: float = 0.0
    asked: float = 0.0
    growth: float = 0.0
    wanted: float = 0.0
    added: float = 0.0
    called: float = 0.0
    changed: float = 0.0
    returned: float = 0.0
    kept: float = 0.0
    alike: float = 0.0

    def after(self, turn: Turned) -> Seen:
        """The sums with one turn more; what is long ago counts less."""
        known = self._faded()
        known = replace(known, requests=known.requests + 1, wanted=known.wanted + turn.wanted)
        return known._begun(turn) if turn.first else known._gone_on(turn)

    def joined(self, more: Seen) -> Seen:
        """These sums and those of what came after them; what is long ago counts less, as with `after`.

        >>> Seen(requests=4.0).joined(Seen(requests=2.0)).requests
        6.0
        """
        known = self._faded()
        return Seen(**{each.name: getattr(known, each.name) + getattr(more, each.name) for each in fields(self)})

    def traffic(self, system: float, total: float = USUAL_TOTAL) -> Traffic:
        """The means, for a system prompt and tools of so many tokens; of few tools less is expected to be wanted."""
        scale = min(total / USUAL_TOTAL, 1.0)
        return Traffic(
            turns=_mean(PRIORS.turns, self.requests, self.conversations),
            system=system,
            asked=_mean(PRIORS.asked, self.asked, self.conversations),
            growth=_mean(PRIORS.growth, self.growth, self.later),
            wanted=_mean(PRIORS.wanted * scale, self.wanted, self.requests),
            added=_mean(PRIORS.added * scale, self.added, self.later),
            called=_mean(PRIORS.called * scale, self.called, self.later),
            returns=_mean(PRIORS.returns, self.returned, self.later),
            news=_mean(PRIORS.news, self.changed, self.later),
            alike=_mean(PRIORS.alike, self.alike, self.conversations),
            kept=_mean(PRIORS.kept, self.kept, self.conversations),
        )

    def _begun(self, turn: Turned) -> Seen:
        return replace(
            self,
            conversations=self.conversations + 1,
            asked=self.asked + turn.ahead,
            kept=self.kept + turn.kept,
            alike=self.alike + turn.alike,
        )

    def _gone_on(self, turn: Turned) -> Seen:
        return replace(
            self,
            later=self.later + 1,
            growth=self.growth + turn.ahead,
            added=self.added + turn.added,
            called=self.called + turn.called,
            changed=self.changed + turn.changed,
            returned=self.returned + turn.returned,
        )

    def _faded(self) -> Seen:
        """Half of each where there is much; the means stay."""
        if self.conversations < MOST:
            return self
        return Seen(**{each.name: getattr(self, each.name) / 2 for each in fields(self)})


def _mean(prior: float, total: float, count: float) -> float:
    return (PRIOR_WEIGHT * prior + total) / (PRIOR_WEIGHT + count)
