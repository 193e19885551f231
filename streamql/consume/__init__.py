"""The only place where data and offset move together.

The protocol: resolve, claim, run, decide, advance or release, recover. A claim is decided by the target's log alone; the catalog only
writes it down. ARCHITECTURE.md, "Consumption", says why each step is as it is.
"""

from streamql.consume.claims import Ending, cancel_waiting, wait_until_free
from streamql.consume.release import give_way, moving_along, tell_of_freed
from streamql.consume.run import consume

__all__ = ["Ending", "cancel_waiting", "consume", "give_way", "moving_along", "tell_of_freed", "wait_until_free"]
