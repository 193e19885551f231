"""The only place where data and offset move together.

The protocol: claim, run, resolve, advance or release, recover. The target's log alone resolves a statement; the catalog records the
outcome. docs/internals/consumption.md says why each step is as it is.
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
