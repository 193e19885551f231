"""The only place where data and offset move together.

The steps of the protocol are: claim, run, resolve, advance or release, recover. The log of its target alone says whether a statement
committed. The catalog records that outcome. docs/internals/consumption.md gives the reason for each step.
"""

from streamql.consume.claims.release import force_release, warn_of_release, with_others_advanced
from streamql.consume.claims.steps import Change
from streamql.consume.claims.waiting import wait_until_free
from streamql.consume.run import consume

__all__ = [
    "Change",
    "consume",
    "force_release",
    "wait_until_free",
    "warn_of_release",
    "with_others_advanced",
]
