"""Statistics of traffic: sums over the turns of a key's conversations with models, and the means computed from them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

PRIOR_TURNS = 3
"""Weight of the prior within one conversation, in turns."""
USUAL_TOTAL = 5000.0
"""Tokens of tools at or above which the priors for wanted tokens apply unscaled."""
PRIOR_WEIGHT = 0.1
"""Weight of a prior, in conversations or turns. It is small because nothing is decided before several were seen."""
MOST = 1000.0
"""Conversations after which all sums are halved, so that older ones count less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Means over the conversations of one key, model, system prompt and set of tools: learnt, or the priors.

    ``turns`` is the length of a conversation. Tokens: ``system`` prompt; ``asked`` in the first message; ``growth`` per
    later turn; ``wanted``, of the tools relevant to a turn; ``added`` and ``called``, of the tools that a later turn
    finds relevant, or calls, for the first time in its conversation. Probabilities: that a turn ``returns`` within the
    cache lifetime; that it brings ``news``, a relevant tool that was neither relevant to the previous turn nor called
    yet; that within the lifetime before a conversation began there was a request of another one (``kept``), or one that
    began with the same relevant tools (``alike``).
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
        """Expected turns to come, this one included, after ``before`` turns; ``before`` again beyond the mean."""
        return self.turns - before if before < self.turns else float(before)

    def revised(self, changed: int, later: int) -> Traffic:
        """Updated for a conversation in which ``changed`` of the ``later`` turns after the first brought news."""
        return replace(self, news=(PRIOR_TURNS * self.news + changed) / (PRIOR_TURNS + later))


PRIORS = Traffic()
"""Assumed for a key without any traffic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """One observed turn. Tokens: ``ahead`` are new in any case; ``wanted`` are those of the relevant tools; ``added``
    and ``called`` are those of tools that are relevant, or were called on the previous turn, for the first time in the
    conversation.

    ``changed``: a relevant tool was neither relevant to the previous turn nor called yet; not used for ``first`` turns.
    ``returned``: within the cache lifetime. For first turns: within the lifetime before, another conversation had a
    request (``kept``), or began with the same relevant tools (``alike``).
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
    """Sums over turns, for one key, model and set of tools."""

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
        """The sums with one more turn; older turns count less."""
        known = self._faded()
        known = replace(known, requests=known.requests + 1, wanted=known.wanted + turn.wanted)
        return known._begun(turn) if turn.first else known._gone_on(turn)

    def joined(self, more: Seen) -> Seen:
        """These sums plus those of later turns; older turns count less, as in `after`.

        >>> Seen(requests=4.0).joined(Seen(requests=2.0)).requests
        6.0
        """
        known = self._faded()
        return Seen(**{each.name: getattr(known, each.name) + getattr(more, each.name) for each in fields(self)})

    def traffic(self, system: float, total: float = USUAL_TOTAL) -> Traffic:
        """The means, for the tokens of a system prompt and of all tools. The priors are scaled down for few tools."""
        scale = min(total / USUAL_TOTAL, 1.0)
        after_another = max(self.conversations - 1, 0.0)  # the first one could follow none
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
            alike=_mean(PRIORS.alike, self.alike, after_another),
            kept=_mean(PRIORS.kept, self.kept, after_another),
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
        """Halve the sums once there are `MOST` conversations; the means stay the same."""
        if self.conversations < MOST:
            return self
        return Seen(**{each.name: getattr(self, each.name) / 2 for each in fields(self)})


COLUMNS = tuple(field.name for field in fields(Seen))
"""Names of the sums, in the order in which stores write them."""


def _mean(prior: float, total: float, count: float) -> float:
    return (PRIOR_WEIGHT * prior + total) / (PRIOR_WEIGHT + count)
