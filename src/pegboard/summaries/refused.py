"""The one error that stays inside: whoever asks a model catches it and takes the rule's summary."""

from __future__ import annotations


class Refused(Exception):  # noqa: N818  # it is what happened to an answer
    """Why a model's summary was not to be had, in few words that can be counted."""
